package storetest

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine outlives the tests (issue 4, leaks).
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
