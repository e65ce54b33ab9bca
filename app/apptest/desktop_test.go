package apptest_test

import (
	"testing"
	"time"

	"localpc/app/apptest"
)

func TestDesktop(t *testing.T) {
	start := time.Now()
	d := apptest.New(t, apptest.Options{})
	t.Logf("up in %v", time.Since(start))
	d.Screenshot("fresh")
}
