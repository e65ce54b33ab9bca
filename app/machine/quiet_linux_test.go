package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"localpc/app/kept"
	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// keepingRig is a rig whose file requests are kept, with a session that may work
// in its folder and cards that are answered with allow. limit is how much is
// kept at most.
func keepingRig(t *testing.T, allow bool) (r *rig, limit *atomic.Int64) {
	t.Helper()
	r, limit = newRig(t), &atomic.Int64{}
	limit.Store(1 << 30)
	k, err := kept.Open(t.Context(), kept.Options{Dir: r.m.o.Paths.Versions(), Store: r.m.o.Store, Log: r.m.log, Limit: limit.Load})
	must(t, err)
	t.Cleanup(k.Close)
	e := files.New(files.Options{Journal: filepath.Join(r.m.o.Paths.Data, "journal"), Keep: k, Log: r.m.log})
	t.Cleanup(func() { must(t, e.Close()) })
	r.m.o.Kept, r.m.o.Executors = k, []capabilities.Capability{e}
	r.m.registry = capabilities.NewRegistry(r.m.sessions, e)
	r.open("s1", 0)
	r.person.answer = func(consent.Request) (consent.Answer, bool) {
		return consent.Answer{Allow: allow, Choice: consent.Choice{Scope: consent.Once}, Via: "card"}, true
	}
	return r, limit
}

func (r *rig) put(name, text string) {
	r.t.Helper()
	must(r.t, os.MkdirAll(filepath.Dir(filepath.Join(r.folder, name)), 0o755))
	must(r.t, os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o600))
}

func (r *rig) text(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.folder, name))
	return string(b)
}

// asked are the questions since the session's own.
func (r *rig) asked() []consent.Request { return r.person.seen()[1:] }

// What a session overwrites, and the little that it deletes or moves, is kept,
// so it is done without a question; the rest of it is asked.
func TestWhatIsKeptIsNotAsked(t *testing.T) {
	r, _ := keepingRig(t, true)
	r.put("a", "mine")
	_, err := r.upload("a", 40)
	must(t, err)
	if n := len(r.asked()); n != 0 || len(r.text("a")) != 40 {
		t.Fatalf("%d questions, it has %q", n, r.text("a"))
	}
	e := r.m.entry(t, "Write a")
	if d, ok := r.decided(e.ID); !ok || d.Decision.By != "mode" || !d.Request.Effects[0].Kept || !e.CanUndo {
		t.Errorf("the record says %+v, the log %+v", d, e)
	}
	_, err = r.m.o.Kept.Undo(t.Context(), consent.NewID(), []string{e.ID}, false)
	must(t, err)
	if r.text("a") != "mine" {
		t.Errorf("undone, it has %q", r.text("a"))
	}

	for i := range 9 {
		r.put(fmt.Sprint("ten/", i), "mine") // and the folder
		r.put(fmt.Sprint("eleven/", i), "mine")
	}
	r.put("eleven/9", "mine")
	_, err = r.call(wire.TypeFileMove, &wire.FileMove{SessionID: "s1", Src: "ten", Dst: "there"})
	must(t, err)
	_, err = r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: "s1", Path: "there"})
	must(t, err)
	if n := len(r.asked()); n != 0 || r.text("there/0") != "" || r.text("ten/0") != "" {
		t.Fatalf("10 that are kept: %d questions", n)
	}
	_, err = r.call(wire.TypeFileMove, &wire.FileMove{SessionID: "s1", Src: "eleven", Dst: "there"})
	must(t, err)
	_, err = r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: "s1", Path: "there"})
	must(t, err)
	if n := len(r.asked()); n != 2 {
		t.Errorf("11: %d questions, want two", n)
	}
	r.put(".envrc", "mine")
	_, err = r.upload(".envrc", 40)
	must(t, err)
	if n := len(r.asked()); n != 3 {
		t.Errorf("what other programs run: %d questions, want three", n)
	}
}

// What can't be kept is asked about: where it is larger than what is kept at
// most, and where nothing is kept at all.
func TestWhatIsNotKeptIsAsked(t *testing.T) {
	r, limit := keepingRig(t, false)
	limit.Store(1 << 20)
	r.put("large", strings.Repeat("x", 2<<20))
	_, err := r.upload("large", 40)
	wantCode(t, err, wire.CodeDenied)
	limit.Store(0)
	r.put("small", "mine")
	_, err = r.upload("small", 40)
	wantCode(t, err, wire.CodeDenied)
	_, err = r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: "s1", Path: "small"})
	wantCode(t, err, wire.CodeDenied)
	_, err = r.call(wire.TypeFileMove, &wire.FileMove{SessionID: "s1", Src: "small", Dst: "moved"})
	wantCode(t, err, wire.CodeDenied)
	if n := len(r.asked()); n != 4 || len(r.text("large")) != 2<<20 || r.text("small") != "mine" {
		t.Errorf("%d questions, it has %q", n, r.text("small"))
	}
}

// What was to be kept, and turns out not to be when it is to run, is asked about
// before anything is lost.
func TestWhatCantBeKeptAfterAllIsAsked(t *testing.T) {
	for name, do := range map[string]func(r *rig) error{
		"overwrite": func(r *rig) error { _, err := r.upload("a", 40); return err },
		"delete": func(r *rig) error {
			_, err := r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: "s1", Path: "a"})
			return err
		},
		"move over": func(r *rig) error {
			_, err := r.call(wire.TypeFileMove, &wire.FileMove{SessionID: "s1", Src: "b", Dst: "a"})
			return err
		},
		"move out": func(r *rig) error {
			_, err := r.call(wire.TypeFileMove, &wire.FileMove{SessionID: "s1", Src: "a", Dst: "/tmp/a"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := keepingRig(t, false)
			r.put("a", "mine")
			r.put("b", "mine, too")
			must(t, os.RemoveAll(r.m.o.Paths.Versions()))
			wantCode(t, do(r), wire.CodeDenied)
			asked := r.asked()
			if len(asked) != 1 || r.text("a") != "mine" || r.text("b") != "mine, too" {
				t.Fatalf("%d questions; a has %q, b %q", len(asked), r.text("a"), r.text("b"))
			}
			for _, e := range asked[0].Effects {
				if e.Kept || strings.Contains(e.Text, "can be undone") {
					t.Errorf("the card says %+v", e)
				}
			}
		})
	}
}
