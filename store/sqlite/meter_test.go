package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"coxswain/session"
)

// A file of a gateway that knew no meters is opened and gets them.
func TestMetersInAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	closeStore(t, openAt(t, path, nil))
	edit(t, path, `DROP TABLE meter`)
	edit(t, path, `DROP TABLE spend`)
	s := openAt(t, path, nil)
	defer closeStore(t, s)
	m := session.Meter{Name: "day", Limit: 9, Period: 24 * time.Hour}
	r, err := s.Reserve(t.Context(), session.Reserve{Op: "o", Meters: []session.Meter{m}, Amount: 3})
	if err != nil || r.Refused != "" || r.Meters[0].Used != 3 {
		t.Errorf("got %+v, %v; want 3 used", r, err)
	}
}

// Meters and ops that are over are removed by those that come, a few at a time.
func TestMetersAreSwept(t *testing.T) {
	clk := newClock()
	s := open(t, clk.now)
	reserve := func(op, meter string) {
		t.Helper()
		m := session.Meter{Name: meter, Limit: 1000, Period: time.Minute}
		if _, err := s.Reserve(t.Context(), session.Reserve{Op: op, Meters: []session.Meter{m}, Amount: 1}); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int64) {
		t.Helper()
		err := s.do(t.Context(), unsynced, func(t *tx) error {
			v, err := t.row(`SELECT (SELECT count(*) FROM spend) + (SELECT count(*) FROM meter)`, 1)
			n = v.int(0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 20 {
		reserve(string(rune('a'+i)), string(rune('a'+i)))
	}
	if n := count(); n != 40 {
		t.Fatalf("got %d rows; want 40", n)
	}
	clk.step(time.Minute)
	reserve("next", "a")
	if n := count(); n != 40-2*meterSweep+1 && n != 40-2*meterSweep+2 {
		t.Errorf("got %d rows; want some %d fewer", n, 2*meterSweep)
	}
	for i := range 4 {
		reserve(string(rune('A'+i)), "a")
	}
	if n := count(); n != 6 {
		t.Errorf("got %d rows; want one meter and the five ops of this minute", n)
	}
}
