package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
)

// Who is logged out while they hold back the rest of a form does nothing with
// it: neither in a browser that was ended, nor where the person was reset.
func TestHeldForms(t *testing.T) {
	t.Parallel()
	s := owned(t)
	ctx := t.Context()
	bob, invite, err := s.store.AddUser(ctx, "Bob")
	if err != nil {
		t.Fatal(err)
	}
	if bob, err = s.store.Claim(ctx, invite, store.Claim{Password: password}); err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		conf := oauth2.Config{ClientID: oauth.ClientID, RedirectURL: "http://127.0.0.1:1234/callback", Scopes: []string{"openid", "machine"}, Endpoint: oauth2.Endpoint{AuthURL: s.url + "/oauth/authorize"}}
		a := s.caller().get(strings.TrimPrefix(conf.AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()), oauth2.SetAuthURLParam("machine_id", "m-x"),
			oauth2.SetAuthURLParam("machine_name", "PC"), oauth2.SetAuthURLParam("machine_system", "Debian"), oauth2.SetAuthURLParam("match", "1234")), s.url))
		at, err := a.Location()
		if err != nil {
			t.Fatalf("%d %s", a.StatusCode, a.text)
		}
		return at.Query().Get("request")
	}
	request := ask()
	users, err := s.store.Users(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who, path string
		form      url.Values
		kind      string
	}{
		{"Bob", "/keys", url.Values{"name": {"a program"}}, "application/x-www-form-urlencoded"},
		{"Bob", "/pair/answer", url.Values{"request": {request}, "answer": {"yes"}}, "application/x-www-form-urlencoded"},
		{"Bob", "/account/password", url.Values{"old": {password}, "password": {"another quiet harbour"}}, "application/x-www-form-urlencoded"},
		{"Ana", "/people", url.Values{"name": {"Eve"}}, "application/x-www-form-urlencoded"},
		{"Bob", "/keys", url.Values{"name": {"a program"}}, "multipart/form-data; boundary=b"},
	} {
		browser := s.caller().logIn(c.who)
		body := c.form.Encode()
		if strings.HasPrefix(c.kind, "multipart") {
			body = "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\na program\r\n--b--\r\n"
		}
		conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost:%s\r\nOrigin: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCookie: %s\r\n\r\n%s",
			c.path, s.port, s.url, c.kind, len(body), browser.cookie(), body[:len(body)-2])
		time.Sleep(300 * time.Millisecond) // it waits for the rest
		id := bob.ID
		if c.who == "Ana" {
			id = store.OwnerID
		}
		if err := s.store.EndBrowsers(ctx, id, "", ""); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, body[len(body)-2:])
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
		resp.Body.Close()
		if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/login?") {
			t.Errorf("%s as %s was answered %d %s", c.path, c.kind, resp.StatusCode, to)
		}
	}
	if keys, err := s.store.Keys(ctx, ""); err != nil || len(keys) != 0 {
		t.Errorf("keys %+v, %v", keys, err)
	}
	if _, err := s.oauth.Pending(ctx, request); err != nil {
		t.Errorf("the request was answered: %v", err)
	}
	if now, err := s.store.Users(ctx); err != nil || len(now) != len(users) {
		t.Errorf("people %+v, %v", now, err)
	}
	if _, err := s.store.LogIn(ctx, "Bob", password); err != nil {
		t.Errorf("his password: %v", err)
	}
}
