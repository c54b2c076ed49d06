package telegram

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
)

// The platform suite: one row for each situation that the platform can bring
// about, T1 to T37, and every platform, X1 to X4. A row replays what Telegram sends (testdata/*.json) through
// the adapter into a real hub, and looks at what the door took, what the store
// has, and what was sent.
type platformRow struct {
	id, name string
	set      gateSet
	play     func(g *gate)
}

var platformRows = slices.Concat(editRows, inputRows, mediaRows, groupRows, channelRows, placeRows, sendRows, floodRows, pollRows, clockRows, pressRows, rowRows, crossRows)

// row runs the rows of one id, each as a subtest that begins with it.
func row(t *testing.T, id string) {
	t.Helper()
	n := 0
	for _, r := range platformRows {
		if r.id == id {
			n++
			t.Run(r.id+" "+r.name, func(t *testing.T) { gated(t, r.set, r.play) })
		}
	}
	if n == 0 {
		t.Errorf("%s has no row", id)
	}
}

// Each row id is a test of its own, so that -run T12 finds it.
func TestT1(t *testing.T)  { row(t, "T1") }
func TestT2(t *testing.T)  { row(t, "T2") }
func TestT3(t *testing.T)  { row(t, "T3") }
func TestT4(t *testing.T)  { row(t, "T4") }
func TestT5(t *testing.T)  { row(t, "T5") }
func TestT6(t *testing.T)  { row(t, "T6") }
func TestT7(t *testing.T)  { row(t, "T7") }
func TestT8(t *testing.T)  { row(t, "T8") }
func TestT9(t *testing.T)  { row(t, "T9") }
func TestT10(t *testing.T) { row(t, "T10") }
func TestT11(t *testing.T) { row(t, "T11") }
func TestT12(t *testing.T) { row(t, "T12") }
func TestT13(t *testing.T) { row(t, "T13") }
func TestT14(t *testing.T) { row(t, "T14") }
func TestT15(t *testing.T) { row(t, "T15") }
func TestT16(t *testing.T) { row(t, "T16") }
func TestT17(t *testing.T) { row(t, "T17") }
func TestT18(t *testing.T) { row(t, "T18") }
func TestT19(t *testing.T) { row(t, "T19") }
func TestT20(t *testing.T) { row(t, "T20") }
func TestT21(t *testing.T) { row(t, "T21") }
func TestT22(t *testing.T) { row(t, "T22") }
func TestT23(t *testing.T) { row(t, "T23") }
func TestT24(t *testing.T) { row(t, "T24") }
func TestT25(t *testing.T) { row(t, "T25") }
func TestT26(t *testing.T) { row(t, "T26") }
func TestT27(t *testing.T) { row(t, "T27") }
func TestT28(t *testing.T) { row(t, "T28") }
func TestT29(t *testing.T) { row(t, "T29") }
func TestT30(t *testing.T) { row(t, "T30") }
func TestT31(t *testing.T) { row(t, "T31") }
func TestT32(t *testing.T) { row(t, "T32") }
func TestT33(t *testing.T) { row(t, "T33") }
func TestT34(t *testing.T) { row(t, "T34") }
func TestT35(t *testing.T) { row(t, "T35") }
func TestT36(t *testing.T) { row(t, "T36") }
func TestT37(t *testing.T) { row(t, "T37") }
func TestX1(t *testing.T)  { row(t, "X1") }
func TestX2(t *testing.T)  { row(t, "X2") }
func TestX3(t *testing.T)  { row(t, "X3") }
func TestX4(t *testing.T)  { row(t, "X4") }

// Every id has a row and a test that runs it, and no row has another id.
func TestNoRowIsMissing(t *testing.T) {
	src, err := os.ReadFile("platform_test.go")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	var ids []string
	for i := 1; i <= 37; i++ {
		ids = append(ids, fmt.Sprint("T", i))
	}
	for _, id := range append(ids, "X1", "X2", "X3", "X4") {
		known[id] = true
		if !slices.ContainsFunc(platformRows, func(r platformRow) bool { return r.id == id }) {
			t.Errorf("%s has no row", id)
		}
		if !regexp.MustCompile(`func Test` + id + `\(t \*testing\.T\) +\{ row\(t, "` + id + `"\) \}`).Match(src) {
			t.Errorf("%s has no test", id)
		}
	}
	for _, r := range platformRows {
		if !known[r.id] {
			t.Errorf("row %q is no row of the table", r.id)
		}
	}
}
