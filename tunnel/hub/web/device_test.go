package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A stranger with many networks shuts nobody out who has logged in before with
// the browser that they use; and that browser has no more guesses for it.
func TestAStrangerShutsNobodyOut(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.member("Bo")
	networks := 0
	// try is a log-in from a network of its own.
	try := func(device, name, password string) (int, string) {
		networks++
		r := httptest.NewRequest("POST", s.url+"/login", strings.NewReader(url.Values{"name": {name}, "password": {password}}.Encode()))
		r.RemoteAddr = fmt.Sprintf("198.51.100.%d:5", networks)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if device != "" {
			r.Header.Set("Cookie", device)
		}
		w := httptest.NewRecorder()
		s.web.Handler().ServeHTTP(w, r)
		cookie, _, _ := strings.Cut(setCookie(w.Header(), "localpc_device"), ";")
		return w.Code, cookie
	}
	want := func(what string, want int, device, name, password string) {
		t.Helper()
		if got, _ := try(device, name, password); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	const wrong = "not the right words"
	code, device := try("", "Ana", password)
	if code != http.StatusSeeOther || device == "" {
		t.Fatalf("log-in: %d, %q", code, device)
	}
	if _, again := try(device, "ANA", password); again != device {
		t.Errorf("the browser is %q after another log-in, and was %q", again, device)
	}
	if _, none := try("", "Ana", wrong); none != "" {
		t.Errorf("a wrong password gives the browser %q", none)
	}
	// shut guesses until no more is taken; on a slow computer a new try may have
	// come meanwhile.
	shut := func(device, name string, tries int) {
		t.Helper()
		n := 0
		for code := 0; code != http.StatusTooManyRequests && n < tries+5; n++ {
			code, _ = try(device, name, wrong)
		}
		if n < tries || n == tries+5 {
			t.Errorf("%d tries for %s, want %d", n, name, tries)
		}
	}
	shut("", "Bo", 31)
	want("Ana's browser, for another's name", http.StatusTooManyRequests, device, "Bo", password)
	shut("", "Ana", 30)
	want("a browser that is not known", http.StatusTooManyRequests, "", "Ana", password)
	want("one that was made up", http.StatusTooManyRequests, "localpc_device=GUESSED."+strings.Repeat("A", 43), "Ana", password)
	want("Ana's", http.StatusSeeOther, device, "Ana", password)
	want("Ana's, however she writes her name", http.StatusSeeOther, device, " ana ", password)
	shut(device, "Ana", 11)
	want("Ana's, when its own tries are used up", http.StatusTooManyRequests, device, "Ana", password)
	s.pass(11 * time.Minute)
	want("Ana's, later", http.StatusSeeOther, device, "Ana", password)
	want("Bo's, later", http.StatusSeeOther, "", "Bo", password)
}
