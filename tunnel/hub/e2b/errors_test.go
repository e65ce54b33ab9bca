package e2b

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The SDK tries again by itself what was too much at once, where it is told when.
func TestTooMuchSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{http.StatusTooManyRequests: "1", http.StatusNotFound: "", http.StatusBadGateway: ""} {
		w := httptest.NewRecorder()
		writeError(w, status, "A sentence.")
		if got := w.Header().Get("Retry-After"); w.Code != status || got != want {
			t.Errorf("%d says %q, want %q", status, got, want)
		}
	}
}
