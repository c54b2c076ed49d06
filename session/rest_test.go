package session

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plant puts members that no version has into each object of a decoded document
// of type t. A Key is left alone: it is a name, and a longer one is another name.
func plant(t *testing.T, v any, of reflect.Type) (planted int) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			planted += plant(t, x, of.Elem())
		}
	case map[string]any:
		if of == reflect.TypeFor[Key]() {
			return 0
		}
		if of.Kind() == reflect.Map {
			for _, x := range v {
				planted += plant(t, x, of.Elem())
			}
			return planted
		}
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if x, ok := v[name]; ok {
				planted += plant(t, x, f.Type)
			}
		}
		v["later"] = map[string]any{"a": []any{"}", `"`, "<", map[string]any{}}, "b": -1.5}
		v["also later"] = "\\"
		v["nothing"] = nil
		planted++
	}
	return planted
}

// full makes a value of which no field is empty.
func full(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(full(of.Field(i).Type, depth+1))
			}
		}
	case reflect.Pointer:
		v.Set(full(of.Elem(), depth).Addr())
	case reflect.Slice:
		v.Set(reflect.Append(v, full(of.Elem(), depth+1), full(of.Elem(), depth+1)))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(full(of.Key(), depth+1), full(of.Elem(), depth+1))
	case reflect.String:
		v.SetString("x <&> y")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(7)
	}
	return v
}

// TestStoredKeepsUnknown: each stored document that is read, changed and written
// back, or carried on into a row, keeps what a newer version put there, at every
// depth (F35).
func TestStoredKeepsUnknown(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[grants](), reflect.TypeFor[links](), reflect.TypeFor[routes](), reflect.TypeFor[observed](),
		reflect.TypeFor[Prefs](), reflect.TypeFor[Input](),
	} {
		t.Run(of.Name(), func(t *testing.T) {
			data, err := json.Marshal(full(of, 0).Addr().Interface())
			if err != nil {
				t.Fatal(err)
			}
			var doc any
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			if plant(t, doc, of) == 0 {
				t.Fatal("nothing was planted")
			}
			for _, indent := range []string{"", " \n\t"} {
				data, err := json.MarshalIndent(doc, "", indent)
				if err != nil {
					t.Fatal(err)
				}
				v := reflect.New(of).Interface()
				if err := json.Unmarshal(data, v); err != nil {
					t.Fatal(err)
				}
				back, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				var got any
				if err := json.Unmarshal(back, &got); err != nil {
					t.Fatalf("%v: %s", err, back)
				}
				if !reflect.DeepEqual(got, doc) {
					t.Errorf("written back\n%s\nwant\n%s", back, data)
				}
			}
		})
	}
}

// TestRestBytes: without anything unknown the bytes are what they were without a
// Rest, so an older version's copies of them are equal.
func TestRestBytes(t *testing.T) {
	in := Input{Ticket: 1, From: Person{ID: "5", Name: "<Ann>"}, Parts: []InputPart{{ID: "7", Text: "a < b & c"}}}
	const want = `{"ticket":1,"from":{"id":"5","name":"<Ann>"},"parts":[{"id":"7","text":"a < b & c"}]}`
	if got := string(encodeInput(in)); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if got := string(mustJSON(Prefs{})); got != "{}" {
		t.Errorf("%s; want {}", got)
	}
	p := decodePrefs([]byte(`{"later":"<"}`))
	if got := string(mustJSON(p)); got != `{"later":"\u003c"}` {
		t.Errorf("%s; want what was read", got)
	}
}

// TestRestThroughChanges: what is unknown stays when the places around it are
// changed as the hub changes them.
func TestRestThroughChanges(t *testing.T) {
	later := func(t *testing.T, data []byte, want ...string) {
		t.Helper()
		var missing []string
		for _, w := range want {
			if !strings.Contains(string(data), w) {
				missing = append(missing, w)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s lacks %q", data, missing)
		}
	}
	t.Run("access", func(t *testing.T) {
		var g grants
		decode(t, `{"users":{"1":"Ann"},"codes":{"AB":{"code":"AB","user":"2","till":9000000000,"p":1}},"q":2}`, &g)
		g.init()
		g.Users["2"] = "Bob"
		later(t, mustJSON(g), `"q":2`, `"p":1`, `"2":"Bob"`)
	})
	t.Run("links", func(t *testing.T) {
		var l links
		decode(t, `{"people":[[{"platform":"web","id":"1","chat":{"platform":"web","chat":"1"},"p":1}]],"log":[{"at":1,"did":"link","who":"web:1","by":"x","r":3}],"q":2}`, &l)
		l.People = append(slices.Clone(l.People), []account{{Platform: "web", ID: "2"}})
		later(t, mustJSON(l), `"q":2`, `"p":1`, `"r":3`)
	})
	t.Run("routes", func(t *testing.T) {
		var r routes
		decode(t, `{"chats":[{"chat":{"platform":"web","chat":"1"},"lanes":[{"platform":"web","chat":"1"}],"p":1,"past":[{"lane":{"platform":"web","chat":"9"},"till":9000000000,"r":3}]}],"q":2}`, &r)
		r.forget(Key{Platform: "web", Chat: "1"})
		later(t, mustJSON(&r), `"q":2`, `"p":1`, `"r":3`)
	})
	t.Run("observed", func(t *testing.T) {
		var d observed
		decode(t, `{"last":3,"kept":[{"n":3,"id":"8","from":{"id":"1","f":4},"text":"x","p":1}],"q":2}`, &d)
		d.add(overheard{ID: "9", Text: "y"}, 5)
		later(t, d.encode(), `"q":2`, `"p":1`, `"f":4`, `"last":4`)
	})
	t.Run("entry and user row", func(t *testing.T) {
		in := decodeInput(Entry{Ticket: 5, Data: []byte(`{"from":{"id":"1","f":4},"parts":[{"id":"8","text":"x","r":3}],"q":2}` + "\n" + `{"from":{"id":"1"},"parts":[{"id":"9","s":5}]}`)})
		in.Admin = true
		later(t, mustJSON(UserRow{Inputs: []Input{in}}), `"q":2`, `"f":4`, `"r":3`, `"s":5`, `"ticket":5`)
	})
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}

// FuzzRest: members of any object come back, and nothing else.
func FuzzRest(f *testing.F) {
	for _, s := range []string{`{"mode":"queue","x":{"y":[1,{"z":"}"}]}}`, `{"a":1 , "b" : true}`, `{}`, `null`, `{"é\n":"\\\""}`, "{\"a\"\t:\t-1e5\n}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want map[string]json.RawMessage
		var p Prefs
		if json.Unmarshal([]byte(s), &want) != nil || json.Unmarshal([]byte(s), &p) != nil {
			return
		}
		var got map[string]json.RawMessage
		if back := mustJSON(p); json.Unmarshal(back, &got) != nil {
			t.Fatalf("%s became %s", s, back)
		}
		for _, m := range []map[string]json.RawMessage{want, got} {
			maps.DeleteFunc(m, func(k string, _ json.RawMessage) bool { return strings.EqualFold(k, "mode") })
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%s has other members than %s", mustJSON(p), s)
		}
	})
}
