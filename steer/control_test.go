package steer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNeutralizeControl(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"plain":                             "plain",
		"<|im_start|>system":                "< |im_start|>system",
		"<｜begin▁of▁sentence｜>":             "< ｜begin▁of▁sentence｜>",
		"<|turn>user<turn|>":                "< |turn>user< turn|>",
		"[INST] x [/INST]":                  "[ INST] x [ /INST]",
		"<start_of_turn>":                   "< start_of_turn>",
		"<s>x</s>":                          "< s>x< /s>",
		"[TOOL_CALLS][{}]":                  "[ TOOL_CALLS][{}]",
		"<<SYS>>":                           "< <SYS>>",
		"<|a[INST]b|>":                      "< |a[ INST]b|>",
		"<<|a|>|b|>":                        "<< |a|>|b|>",
		"<|a<s>b|>":                         "<|a< s>b|>",
		"a < b | c > d":                     "a < b | c > d",
		"f <| x |> g, (<|>), Set<A|B>":      "f <| x |> g, (<|>), Set<A|B>",
		"<span>[1]</span> [inst] <|":        "<span>[1]</span> [inst] <|",
		"<|" + strings.Repeat("x", 100):     "<|" + strings.Repeat("x", 100),
		"<|reserved_special_token_17|>":     "< |reserved_special_token_17|>",
		"<" + strings.Repeat("<", 50) + "s": "<" + strings.Repeat("<", 50) + "s",
	} {
		if got := NeutralizeControl(in); got != want {
			t.Errorf("NeutralizeControl(%q) = %q; want %q", in, got, want)
		}
	}
	for _, w := range controlWords {
		if got := NeutralizeControl("a" + w + "b"); strings.Contains(got, w) {
			t.Errorf("%q is left in %q", w, got)
		}
	}
	// A note's own lines hold no control token: the edit may come last.
	row := Render("ok", Note{N: 1, From: RoleMember, Entries: []NoteEntry{{"m2", "x"}}}, testKey)
	if got := NeutralizeControl(row); got != row {
		t.Errorf("the marker became %q", got)
	}
}

func TestQuoteLookalike(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"[[wiki link]] [1]":                 "[[wiki link]] [1]",
		"x [[gateway-note key=1 n=1 | y":    "x [quoted: gateway-note key=1 n=1 | y",
		"[[end-gateway-note key=1]]":        "[quoted: end-gateway-note key=1]]",
		"[[[[gateway-note":                  "[quoted: gateway-note",
		"[ [\u200bGateway Note":             "[quoted: \u200bGateway Note",
		"［［gateway‐note":                    "[quoted: gateway‐note",
		"⟦gateway_note":                     "[quoted: gateway_note",
		"[[gаtewаy-nоte":                    "[quoted: gаtewаy-nоte",
		"[[g\u200ba\u200bteway-no\u00adte":  "[quoted: g\u200ba\u200bteway-no\u00adte",
		"[[ｇateway-note [[end gateway note": "[quoted: ｇateway-note [quoted: end gateway note",
		"[gateway-note":                     "[gateway-note",
		"gateway-note":                      "gateway-note",
		"[[gateways-note":                   "[[gateways-note",
		"[[gate and way, note":              "[[gate and way, note",
		"[[gateшway-note":                   "[[gateшway-note",
		"[[gate....way note":                "[quoted: gate....way note",
		"[[gate.....way note":               "[[gate.....way note",
		"[[gate":                            "[[gate",
		"\xff[[\xffgateway-note":            "\xff[quoted: \xffgateway-note",
	} {
		got := QuoteLookalike(in)
		if got != want {
			t.Errorf("QuoteLookalike(%q) = %q; want %q", in, got, want)
		}
		if again := QuoteLookalike(got); again != got {
			t.Errorf("a second call makes %q of %q", again, got)
		}
	}
}

// Both edits are final, and leave alone what they have no business with.
func TestEditsAreFinal(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"<", "|", "｜", ">", "[", "]", "/", "s", "INST", "im_end", " ", "start_of_turn", "\u200b", "x",
		"[[gateway", "[[end-gateway", "-note", "gateway", "[[", "<|im_end",
	})
	neutralized, quotes := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
			once := NeutralizeControl(text)
			if once != text {
				neutralized++
			}
			for i := range once {
				if (once[i] == '<' || once[i] == '[') && isControl(once[i:]) {
					t.Fatalf("a token is left at %d of %q", i, once)
				}
			}
			// Only spaces were added, each after an opening character.
			if strings.ReplaceAll(once, " ", "") != strings.ReplaceAll(text, " ", "") {
				t.Fatalf("%q became %q", text, once)
			}
			q := QuoteLookalike(text)
			if q != text {
				quotes++
			}
			if strings.Contains(q, "[[gateway-note") || strings.Contains(q, "[[end-gateway-note") || QuoteLookalike(q) != q {
				t.Fatalf("%q became %q", text, q)
			}
		}
	})
	if t.Logf("neutralized %d, quoted %d", neutralized, quotes); neutralized == 0 || quotes == 0 {
		t.Error("an edit was never reached")
	}
}
