package hub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
)

// A program that holds a person's key cannot connect a computer for them: only
// their own log-in in a browser agrees to that.
func TestNoConsentByKey(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data, o.Pages, o.PublicURL = dir, true, "http://127.0.0.1" })
	st, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	key, err := st.AddKey(t.Context(), store.OwnerID, "Test")
	if err != nil {
		t.Fatal(err)
	}
	const ask = `{"client_id":"autogpt-local-executor","redirect_uri":"http://localhost:41899/callback","scopes":["USE_TOOLS"],"state":"s",
		"code_challenge":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","code_challenge_method":"S256"}`
	for _, secret := range []string{key.Secret, "e2b_" + strings.Repeat("0", 40), ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/oauth/authorize", strings.NewReader(ask))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if secret != "" {
			req.Header.Set("Authorization", "Bearer "+secret)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 401 || strings.Contains(string(body), "code=") {
			t.Errorf("with %.8q: %d %s", secret, resp.StatusCode, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
