package storetest

import (
	"testing"
	"time"

	"coxswain/session"
)

// TestModel holds the model to the suite it is the measure of: a rule that the
// model breaks is a wrong rule.
func TestModel(t *testing.T) {
	Run(t, openModel)
}

func openModel(_ *testing.T, now func() time.Time) session.Store { return NewModel(now) }

// TestModelEquivalence holds the model to another of its kind: what the
// streams meet, and that none of it depends on anything but the stream.
func TestModelEquivalence(t *testing.T) {
	Equivalence(t, map[string]func(*testing.T, func() time.Time) session.Store{"model": openModel})
}
