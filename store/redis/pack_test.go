package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/redis/redistest"
)

// said is a row as the product has it.
const said = `{"text":"The March data is in the report now; the totals of both tables changed.","calls":[{"id":"1d5HVElzc",` +
	`"name":"read_file","args":"{\"path\":\"report.md\"}","private":{"id":"call_1"}}],"model":"api.example.com/m"}`

// TestPackedRows: whatever a row's data are, they come back as they were, be they
// such that packing makes them longer or that look like packed ones.
func TestPackedRows(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	s := open(t, srv, func(o *Options) { o.Relaxed = true })
	noise := make([]byte, 3000)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise) // it never fails
	frame := s.packRow(session.Row{Type: session.RowAssistant, Data: []byte(said)})
	if len(frame) > len(said)/2 || frame[0] != asPacked {
		t.Fatalf("a row of %d B is %d B, and begins with %d; want less than half, packed", len(said), len(frame), frame[0])
	}
	var rows []session.Row
	for _, data := range [][]byte{
		[]byte(said), nil, {asIs}, {asPacked}, {2}, {asPacked, 2, 3}, {asIs, asPacked}, frame, []byte(zstdMagic), noise, append([]byte{asPacked}, noise...),
		append([]byte{asIs}, noise...), []byte(strings.Repeat(said, 2000)), []byte("{}"),
	} {
		for _, kind := range []session.RowType{session.RowAssistant, session.RowTool, session.RowSteer} {
			rows = append(rows, session.Row{Type: kind, Data: data})
		}
	}
	b := begun(t, s)
	// A script moves the steer as it lies in the slot.
	steered := session.Row{Type: session.RowSteer, Data: []byte{asPacked, 9}}
	accept(t, s, lane1, "m:steer", func(a *session.Accept) { a.Want, a.Turn, a.Data = steer.Steer, b.Lane.Turn, steered.Data })
	rows = append(rows, session.Row{Type: session.RowTool, Data: []byte("{}")})
	if _, err := s.Commit(t.Context(), b.Lease, session.Commit{Op: "c1", Seq: b.Lane.Seq, Rows: rows, Drain: true}); err != nil {
		t.Fatal(err)
	}
	rows = append(rows, steered)
	got, err := s.Rows(t.Context(), lane1, 1, b.Lane.Seq, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows) {
		t.Fatalf("got %d rows; want %d", len(got), len(rows))
	}
	for i, r := range got {
		if !bytes.Equal(r.Data, rows[i].Data) || r.Type != rows[i].Type {
			t.Errorf("row %d: got %c %.40q of %d B; want %c %.40q of %d B", i, r.Type, r.Data, len(r.Data), rows[i].Type, rows[i].Data, len(rows[i].Data))
		}
	}
}

// storedRows are the rows of lane1 as Redis has them.
func storedRows(t *testing.T, srv *redistest.Server, s *Store) (all []string) {
	t.Helper()
	for _, v := range srv.Do("LRANGE", s.partitionOf(lane1)+"r1:"+lane1.String(), 0, -1).([]any) {
		all = append(all, v.(string))
	}
	return all
}

// TestPlainStore: a store that an earlier release made keeps its rows plain, for a
// gateway of that release may read them beside this one (issue 4, drain and
// deploy). What is new is packed.
func TestPlainStore(t *testing.T) {
	srv := redistest.Start(t, "appendfsync no")
	for schema, wantPlain := range map[int]bool{schemaPlain: true, Schema: false} {
		t.Run(fmt.Sprint("schema ", schema), func(t *testing.T) {
			same := func(o *Options) { o.Relaxed, o.Prefix = true, fmt.Sprint("plain", schema) }
			made := open(t, srv, same)
			srv.Do("HSET", made.cfgKey(), "schema", schema)
			s := open(t, srv, same)
			b := begun(t, s)
			rows := []session.Row{{Type: session.RowAssistant, Data: []byte(said)}, {Type: session.RowTool, Data: []byte{asPacked, 1}}}
			if _, err := s.Commit(t.Context(), b.Lease, session.Commit{Op: "c1", Seq: b.Lane.Seq, Rows: rows}); err != nil {
				t.Fatal(err)
			}
			stored := storedRows(t, srv, s)
			if got := slices.ContainsFunc(stored, func(r string) bool { return strings.HasSuffix(r, "\n"+said) }); got != wantPlain {
				t.Errorf("a row lies plain: %v; want %v: %q", got, wantPlain, stored)
			}
			got, err := s.Rows(t.Context(), lane1, 1, b.Lane.Seq, 0)
			if err != nil || len(got) != 2 || string(got[0].Data) != said || !bytes.Equal(got[1].Data, rows[1].Data) {
				t.Errorf("rows: got %v, %v; want them as they were written", got, err)
			}
		})
	}
}

// TestDictionaries: what was packed once can be read for ever. The frame was
// written when its dictionary was made.
func TestDictionaries(t *testing.T) {
	for i, d := range []struct {
		dict  []byte
		sum   string
		frame string
	}{
		{dict1, "c95b33fcd6047bb3d08330edbb4947618145ed620bd286e9e3f2150c3f5287ad",
			"012101dacd02007402204d617263686e6f77746f7461626f7468673164354856456c7a636170692e2e636f6d2f6d227d12fc0e083286b8e188b776a0459ee3a7ec7fe0c990244be88291ec264d6b90d797a301cefcecd3bf65c1fc6d0a958d0d"},
	} {
		if sum := fmt.Sprintf("%x", sha256.Sum256(d.dict)); sum != d.sum {
			t.Errorf("dictionary %d has changed (%s): rows packed with it are lost; give the new one the next number", i+1, sum)
		}
		frame, err := hex.DecodeString(d.frame)
		if err != nil {
			t.Fatal(err)
		}
		r := session.Row{Type: session.RowAssistant, Data: frame}
		if err := (&Store{packs: true}).unpackRow(&r); err != nil || string(r.Data) != said {
			t.Errorf("a row packed with dictionary %d: got %q, %v; want %q", i+1, r.Data, err, said)
		}
	}
}

// TestUnknownPacking: a row that this gateway cannot read is an error that says so,
// and nothing else.
func TestUnknownPacking(t *testing.T) {
	s := &Store{packs: true}
	for _, data := range []string{"\x01\x23\x63\x02", "\x01", "\x01" + said} { // another dictionary; nothing; no frame
		r := session.Row{Seq: 7, Type: session.RowTool, Data: []byte(data)}
		if err := s.unpackRow(&r); err == nil || !strings.Contains(err.Error(), "row 7 was packed by another version") {
			t.Errorf("%.10q: got %q, %v; want it refused", data, r.Data, err)
		}
	}
}

// BenchmarkPackRow packs a row of 230 bytes and reads it back.
func BenchmarkPackRow(b *testing.B) {
	s := &Store{packs: true}
	r := session.Row{Type: session.RowAssistant, Data: []byte(said)}
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			s.packRow(r)
		}
		b.ReportMetric(float64(len(s.packRow(r)))/float64(len(said)), "ratio")
	})
	frame := s.packRow(r)
	b.Run("unpack", func(b *testing.B) {
		for b.Loop() {
			u := session.Row{Type: r.Type, Data: frame}
			if err := s.unpackRow(&u); err != nil {
				b.Fatal(err)
			}
		}
	})
}
