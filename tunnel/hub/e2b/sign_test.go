//go:build unix

package e2b_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Signed addresses lead to the root of the hub and name no sandbox; it is found
// by the signature, which is good for that sandbox, path, user and way only.
func TestSDKSignedAddresses(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct{ Down, Soon, Old, Up, Form, UpSoon, Other, User, Paused, Ended string }
		s.js(t, `
await Sandbox.create()
const s = await Sandbox.create(), r = {}
await s.files.write('page.html', '<script>alert(1)</script>')
await s.files.write('odd & ünïcode+name#.txt', 'odd')
r.down = await s.downloadUrl('page.html'); r.soon = await s.downloadUrl('odd & ünïcode+name#.txt', { useSignatureExpiration: 60 })
r.old = await s.downloadUrl('page.html', { useSignatureExpiration: -1 })
r.up = await s.uploadUrl('up.txt'); r.form = await s.uploadUrl(); r.upSoon = await s.uploadUrl('soon.txt', { useSignatureExpiration: 60 })
r.user = await s.downloadUrl('page.html', { user: 'user' }); r.other = await s.downloadUrl('page.html', { user: 'root' })
const e = await Sandbox.create()
r.ended = await e.downloadUrl('page.html'); await e.kill()
const p = await Sandbox.create()
r.paused = await p.downloadUrl('page.html'); await p.pause()
out(r)`, &got)
		if !strings.HasPrefix(got.Down, s.URL+"/files?") {
			t.Errorf("the address is %s, not at the root of %s", got.Down, s.URL)
		}
		resp := get(t, got.Down, nil)
		if resp.status != 200 || resp.body != "<script>alert(1)</script>" {
			t.Errorf("download: %d %q", resp.status, resp.body)
		}
		// The person's bytes never become a page of the hub.
		for header, want := range map[string]string{"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=page.html",
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"} {
			if v := resp.header.Get(header); v != want {
				t.Errorf("%s is %q, want %q", header, v, want)
			}
		}
		if r := get(t, got.Soon, nil); r.status != 200 || r.body != "odd" {
			t.Errorf("before its expiry: %d %q", r.status, r.body)
		}
		if r := get(t, got.User, nil); r.status != 200 {
			t.Errorf("for the user: %d %q", r.status, r.body)
		}
		if r := get(t, got.Down, http.Header{"Range": {"bytes=-9"}}); r.status != 206 || r.body != "</script>" {
			t.Errorf("a part: %d %q", r.status, r.body)
		}
		if r := request(t, "HEAD", got.Down, nil); r.status != 200 || r.header.Get("Content-Length") != "25" {
			t.Errorf("HEAD: %d %q", r.status, r.header)
		}
		const refused = `{"code":401,"message":"The access token of a sandbox, or a good signature, is needed."}` + "\n"
		for what, u := range map[string]string{
			"an old signature": got.Old, "one for another path": strings.Replace(got.Down, "page.html", "up.txt", 1), "one for another user": got.Down + "&username=user",
			"another one": strings.Replace(got.Down, "signature=v1_", "signature=v1_A", 1), "one for the other way": got.Up, "one without an expiry": got.Down + "&signature_expiration=99999999999",
			"one whose expiry was moved": strings.Replace(got.Soon, "signature_expiration=", "signature_expiration=9", 1), "none": s.URL + "/files?path=page.html",
			"an empty one": s.URL + "/files?path=page.html&signature=", "one of a sandbox that ended": got.Ended,
		} {
			// Nothing tells one from the other.
			if r := get(t, u, nil); r.status != 401 || r.body != refused {
				t.Errorf("%s: %d %s", what, r.status, r.body)
			}
		}
		if r := get(t, got.Other, nil); r.status != 401 || !strings.Contains(r.body, `no user \"root\"`) {
			t.Errorf("for a user that is not there: %d %s", r.status, r.body)
		}
		if r := get(t, got.Paused, nil); r.status != 412 || !strings.Contains(r.body, "paused") {
			t.Errorf("of a paused sandbox: %d %s", r.status, r.body)
		}
		for u, name := range map[string]string{got.Up: "up.txt", got.UpSoon: "soon.txt", got.Form: "sub/named.txt"} {
			var form bytes.Buffer
			w := multipart.NewWriter(&form)
			part, _ := w.CreateFormFile("file", "sub/named.txt")
			_, _ = part.Write([]byte("uploaded"))
			w.Close()
			req, _ := http.NewRequest("POST", u, &form)
			req.Header.Set("Content-Type", w.FormDataContentType())
			if status, body := do(t, req); status != 200 || !strings.Contains(body, `"path":"`+name+`"`) {
				t.Errorf("upload of %s: %d %s", name, status, body)
			}
			if data, err := os.ReadFile(filepath.Join(s.Dir, name)); err != nil || string(data) != "uploaded" {
				t.Errorf("uploaded %q, %v", data, err)
			}
		}
		req, _ := http.NewRequest("POST", got.Down, strings.NewReader("x"))
		if status, _ := do(t, req); status != 401 {
			t.Errorf("an upload to an address for reading: %d", status)
		}
	})
}

// Who guesses signatures is slowed down, good ones included.
func TestGuessedSignatures(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	var down string
	s.js(t, `
const s = await Sandbox.create()
await s.files.write('f', 'x')
out(await s.downloadUrl('f'))`, &down)
	// Without a network between, which could be slower than what is allowed.
	guess := httptest.NewRequest("GET", s.URL+"/files?path=f&signature=v1_x", nil)
	guess.RemoteAddr = "127.0.0.1:1"
	eventually(t, "guesses are refused", func() bool {
		for range 100 {
			w := httptest.NewRecorder()
			s.Hub.Handler().ServeHTTP(w, guess)
			if w.Code == 429 && w.Header().Get("Retry-After") != "" {
				return true
			}
			if w.Code != 401 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		return false
	})
	eventually(t, "a good one is taken again", func() bool { return get(t, down, nil).status == 200 })
}
