package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"localpc/app/settings"
	"localpc/tunnel"
)

// fakeHub is a hub inside that gives tokens and never listens.
type fakeHub struct {
	EmbeddedHub
	start  error
	tokens int
}

func (h *fakeHub) Start(context.Context) (string, error) { return "http://127.0.0.1:4417", h.start }
func (h *fakeHub) Stop()                                 {}
func (h *fakeHub) MachineToken(context.Context, string, string) (string, error) {
	h.tokens++
	return fmt.Sprintf("token %d", h.tokens), nil
}

func (h *fakeHub) PassingToken(ctx context.Context, id, name string) (string, error) {
	return h.MachineToken(ctx, id, name)
}

// A token that was kept in memory ends with the next one, wherever that is
// kept: pairing again mends a machine whose keychain has come back.
func TestTokenFromMemoryToTheKeychain(t *testing.T) {
	m := newMachine(t)
	m.o.Hub = &fakeHub{}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	t.Cleanup(keyring.MockInit)
	token := func(want string) {
		t.Helper()
		got, err := m.link.token(t.Context())
		if err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	keyring.MockInitWithError(errors.New("the collection is locked"))
	token("token 1")
	token("token 1")
	keyring.MockInit()
	_, err := m.link.mint(t.Context())
	must(t, err)
	token("token 2")
	// The hub of somebody else needs the keychain, and says so.
	keyring.MockInitWithError(errors.New("the collection is locked"))
	if _, err := m.link.source("https://hub.example", &tunnel.Network{}).token(t.Context()); err == nil || !strings.Contains(err.Error(), "keychain can't be used") {
		t.Errorf("%v", err)
	}
}

func TestHubInsideThatDoesNotStart(t *testing.T) {
	m := newMachine(t)
	taken := &net.OpError{Op: "listen", Err: errors.New("address already in use")}
	for err, want := range map[error]string{
		&startError{taken}: "can't listen on 127.0.0.1:4417",
		&startError{errors.New("this data was written by a newer version")}: "can't start; the log says why",
	} {
		if got := m.startProblem(err); !strings.Contains(got, want) {
			t.Errorf("%q for %v", got, err)
		}
	}
}

// Where the settings can't be saved the machine stays paired, and says so in a
// sentence.
func TestUnpairThatCannotBeSaved(t *testing.T) {
	m := newMachine(t)
	m.o.Hub = &fakeHub{start: errors.New("not here")}
	dir, err := os.MkdirTemp("", "m")
	must(t, err)
	m.o.Settings, err = settings.Load(settings.Paths{Data: dir})
	must(t, err)
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	must(t, os.RemoveAll(dir))
	if _, err := m.unpair(t.Context()); err == nil || !strings.Contains(err.Error(), "still paired") {
		t.Errorf("%v", err)
	}
	if s := m.link.state(); !s.hub.Paired || m.o.Settings.Get().Hub != settings.HubThis {
		t.Errorf("%+v", s)
	}
	m.cancel()
	m.wg.Wait()
}
