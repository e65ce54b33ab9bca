package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/hub"
	hubstore "localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// A tokens's life is much shorter than the command: nobody notices.
func TestExpiryInMidCommand(t *testing.T) {
	a, p := newOwnHub(t, func(o *hub.Options) { o.AccessTTL = 3 * time.Second }), newPaired(t)
	p.signIn(a)
	first, err := p.tokens(a.url)
	must(t, err)
	p.probe.run = func(ctx context.Context, _ capabilities.Call, _ consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		select {
		case <-time.After(8 * time.Second):
			return exited(), nil
		case <-ctx.Done():
			return capabilities.Result{}, context.Cause(ctx)
		}
	}
	id := p.m.o.Settings.Get().MachineID
	box, err := a.h.Open(t.Context(), wire.SessionOpen{PrincipalID: hubstore.OwnPrincipal, PrincipalName: "Claude", TTLSeconds: 60, WaitMS: 30000}, hubstore.Sandbox{User: "owner", Machine: id, Principal: hubstore.OwnPrincipal})
	must(t, err)
	var offline atomic.Int32
	watch, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watch.Err() == nil {
			if !p.m.Snapshot().Hub.Online {
				offline.Add(1)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	m, err := a.h.Call(t.Context(), box, wire.TypeProcessStart, &wire.ProcessStart{SessionID: box.ID, Cmd: "sleep", Args: []string{"8"}, TimeoutMS: 60000, WaitMS: 30000})
	if err != nil || m.Type != wire.TypeProcessExited {
		t.Errorf("the command ended with %s %+v, %v", m.Type, m.Payload, err)
	}
	stop()
	<-watched
	now, err := p.tokens(a.url)
	if n := offline.Load(); n != 0 || err != nil || now.Access == first.Access || now.Refresh == first.Refresh {
		t.Errorf("offline %d times; the tokens are %+v, %v", n, now, err)
	}
}

// Somebody else has used the refresh token: the hub ends the sign-in, and the
// person is asked to sign in again, which mends it.
func TestRefreshTokenStolen(t *testing.T) {
	a, p := newOwnHub(t, func(o *hub.Options) { o.AccessTTL = 3 * time.Second }), newPaired(t)
	p.signIn(a)
	stolen, err := p.tokens(a.url)
	must(t, err)
	tokenStatus(t, a.url, stolen) // the thief renews before this machine does, or after
	s := p.until("sign in again", func(s snapshot.Snapshot) bool { return s.State == snapshot.SignIn })
	if s.Line != "Sign in again" || s.Fix != snapshot.Pair || s.FixLabel != "Sign in again" || s.Problem == "" || s.Hub.SignIn != "ended" || !s.Hub.Paired {
		t.Errorf("it shows %+v", s)
	}
	p.signIn(a)
	if s := p.m.Snapshot(); s.Problem != "" || s.State != snapshot.Online {
		t.Errorf("it shows %+v", s)
	}
}

// A restart goes on with what the keychain has.
func TestRestartSignedIn(t *testing.T) {
	a, p := newOwnHub(t, func(o *hub.Options) { o.AccessTTL = 2 * time.Second }), newPaired(t)
	p.signIn(a)
	p.quit()
	time.Sleep(2500 * time.Millisecond) // the access token ends meanwhile
	p.m = openMachine(t, p.m.o.Paths)
	p.run()
	p.online()
}

// AutoGPT's platform, in its own shape, at our hub's face of it.
func TestAutoGPT(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	base := snapshot.AutoGPT{Web: a.url, API: a.url + "/", WS: "ws" + strings.TrimPrefix(a.url, "http"), Ports: "41899-41910"}
	for _, bad := range []snapshot.AutoGPT{{Web: "http://platform.example"}, {WS: "https://platform.example"}, {Ports: "80"}, {Ports: "x"}, {ClientID: "a b"}} {
		p.says(p.pair(snapshot.Intent{Text: "autogpt", AutoGPT: &bad}), "AutoGPT")
	}
	if s := p.m.Snapshot(); s.Connect.AutoGPT != s.Connect.AutoGPTUsual || s.Connect.AutoGPT.Web != settings.DefaultAutoGPT.Web {
		t.Errorf("the window offers %+v", s.Connect.AutoGPT)
	}
	done := p.pair(snapshot.Intent{Text: "autogpt", AutoGPT: &base})
	now := p.stage(snapshot.SignInBrowser)
	if now.Kind != "autogpt" || now.Hub != "autogpt" || now.Match != "" || !regexp.MustCompile(`^http://localhost:4(18|19)\d\d/callback$`).MatchString(redirectOf(t, now.URL)) {
		t.Errorf("the window has %+v", now)
	}
	a.agree(p.page(), "", "yes")
	p.says(done, "Paired")
	s := p.online()
	if s.Hub.Kind != "autogpt" || s.Hub.Name != "AutoGPT" || s.Hub.Address != a.url || s.Connect.AutoGPT.API != a.url || s.Connect.AutoGPT.Ports != "41899-41910" {
		t.Errorf("it shows %+v, %+v", s.Hub, s.Connect.AutoGPT)
	}
	tokens, err := p.tokens(settings.HubAutoGPT)
	if err != nil || !strings.HasPrefix(tokens.Access, "agpt_xt_") || tokens.Seconds < 3500 || tokens.Seconds > 3600 {
		t.Errorf("the keychain has %+v, %v", tokens, err)
	}
	if said := p.intend(snapshot.Unpair); said != "Unpaired." {
		t.Errorf("it says %q", said)
	}
	if status := tokenStatus(t, a.url, tokens); status == 200 {
		t.Error("the platform renews it still")
	}
}

// The platform has not switched local machines on: it is said, and not asked
// over and over.
func TestAutoGPTNotEnabled(t *testing.T) {
	p := newPaired(t)
	var dials atomic.Int32
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dials.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"detail":"Local executor is not enabled for this user"}`)
	}))
	defer platform.Close()
	must(t, login.Save(t.Context(), p.m.o.Keychain, login.TokenItem(settings.HubAutoGPT), login.Tokens{Access: "agpt_xt_1", Refresh: "agpt_rt_1", Received: time.Now(), Seconds: 3600}))
	must(t, p.m.o.Settings.Change(func(s *settings.Settings) {
		s.Hub, s.AutoGPT.WS = settings.HubAutoGPT, "ws"+strings.TrimPrefix(platform.URL, "http")
	}))
	p.intend(snapshot.Reconnect)
	s := p.until("the problem", func(s snapshot.Snapshot) bool { return s.Fix != "" })
	if !strings.Contains(s.Problem, "AutoGPT has not switched local computers on for this account.") || s.Fix != snapshot.Reconnect || s.State != snapshot.Offline {
		t.Errorf("it shows %q, %q, %s", s.Problem, s.FixLabel, s.State)
	}
	time.Sleep(1500 * time.Millisecond)
	if n := dials.Load(); n != 1 {
		t.Errorf("%d dials", n)
	}
}

// A pairing line works as it did.
func TestPairingLine(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	line, err := a.h.MachineToken(t.Context(), p.m.o.Settings.Get().MachineID, "Anna's PC")
	must(t, err)
	p.says(p.pair(snapshot.Intent{Text: strings.Replace(a.url, "http", "HTTP", 1) + "/#" + line}), "Paired with Anna's hub as Anna.")
	p.online()
	if k, err := p.tokens(a.url); err != nil || k.Access != line || k.Refresh != "" {
		t.Errorf("the keychain has %+v, %v", k, err)
	}
	must(t, a.h.RevokeMachine(t.Context(), p.m.o.Settings.Get().MachineID))
	p.until("sign in again", func(s snapshot.Snapshot) bool { return s.State == snapshot.SignIn })
}

// What is not encrypted and leaves this computer is said, loudly.
func TestOpenConnectionIsSaid(t *testing.T) {
	for hub, want := range map[string]bool{"http://127.0.0.1:4417": false, "http://localhost": false, "https://hub.example": false, "http://192.168.1.5:4417": true, "http://nas": true} {
		if w := openWarning(hub); (w != "") != want {
			t.Errorf("%s: %q", hub, w)
		}
	}
	p := newPaired(t)
	must(t, p.m.o.Settings.Change(func(s *settings.Settings) { s.Hub = "http://nas.invalid" }))
	p.intend(snapshot.Reconnect)
	if s := p.m.Snapshot(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "nas.invalid is not encrypted") {
		t.Errorf("it warns %q", s.Warnings)
	}
	p.until("not signed in", func(s snapshot.Snapshot) bool { return s.Fix == snapshot.Pair && s.FixLabel == "Sign in" })
	p.intend(snapshot.Unpair)
	if s := p.m.Snapshot(); len(s.Warnings) != 0 {
		t.Errorf("it warns %q", s.Warnings)
	}
}

// Nothing of a sign-in is in the log, the settings or a snapshot.
func TestTokensStayInTheKeychain(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	p.signIn(a)
	k, err := p.tokens(a.url)
	must(t, err)
	snap, err := json.Marshal(p.m.Snapshot())
	must(t, err)
	files := map[string]string{"snapshot": string(snap)}
	must(t, filepath.WalkDir(p.m.o.Paths.Data, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[path] = string(b)
		}
		return err
	}))
	for where, text := range files {
		for _, secret := range []string{k.Access, k.Refresh} {
			if strings.Contains(text, secret) {
				t.Errorf("a token is in %s", where)
			}
		}
	}
	if len(files) < 3 {
		t.Fatal(fmt.Sprint("looked at too little: ", len(files)))
	}
}
