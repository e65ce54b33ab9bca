//go:build linux

package files

import (
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

// The broader rule of a card holds for its direction, on real files, and for
// nothing beyond: not for what deletes where it was given for changing, and
// never for names that other programs run.
func TestWideRules(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a.txt", "b.txt", "dir/c.txt", ".git/config"} {
		r.put(name, "x")
	}
	calls := map[string]capabilities.Call{
		"read": r.readCall("a.txt"), "list": r.listCall("", 2), "stat": r.pathCall(wire.TypeFileStat, "b.txt"),
		"search": r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Text: "x", Max: 9}), "watch": r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Recursive: true}),
		"make": r.writeCall("new/x.txt", "x"), "overwrite": r.writeCall("b.txt", "y"), "make a folder": r.pathCall(wire.TypeFileMkdir, "folder"),
		"move": r.moveCall("a.txt", "z.txt"), "move onto": r.moveCall("a.txt", "b.txt"),
		"delete": r.pathCall(wire.TypeFileDelete, "dir"), "hook": r.writeCall(".git/hooks/x", "y"), "delete a start-up name": r.pathCall(wire.TypeFileDelete, ".git"),
	}
	reads, changes := []string{"list", "read", "search", "stat", "watch"}, []string{"make", "make a folder", "overwrite"}
	moves := []string{"move", "move onto"}
	for _, c := range []struct {
		card, words string
		covers      []string
	}{
		{"read", "reading in this folder", reads},
		{"list", "reading in this folder", reads},
		{"overwrite", "reading, making and changing files in this folder, not moving or deleting them", slices.Concat(reads, changes)},
		{"make a folder", "reading, making and changing files in this folder, not moving or deleting them", slices.Concat(reads, changes)},
		{"move", "reading, making, changing and moving files in this folder, not deleting them", slices.Concat(reads, changes, moves)},
		{"delete", "reading, making, changing, moving and deleting files in this folder", slices.Concat(reads, changes, moves, []string{"delete"})},
	} {
		d, err := r.describe(calls[c.card])
		must(t, err)
		if d.Wide == nil || d.Wide.Words != c.words {
			t.Errorf("the card to %s offers %+v", c.card, d.Wide)
			continue
		}
		for name, call := range calls {
			d2, err := r.describe(call)
			must(t, err)
			req := capabilitytest.Request(r.s, "files", d2)
			req.Mode = consent.ModeAsk
			kinds := make([]string, 0, len(d.Wide.Effects))
			for _, k := range d.Wide.Effects {
				kinds = append(kinds, string(k))
			}
			rule := consent.Rule{Hub: req.Hub, Principal: req.Principal.ID, Folder: req.Folder, Capability: "files", Action: d.Wide.Action, Effects: strings.Join(kinds, ", "), Wide: true}
			now := time.Now()
			v := policy.Policy{}.Decide(req, []consent.Stored{{ID: "g", Rule: rule, Scope: consent.Session, Session: req.Session, Created: now}}, now)
			if got, want := v.Outcome == consent.Allowed, slices.Contains(c.covers, name); got != want {
				t.Errorf("the broader rule of %s covers %s: %v, want %v", c.card, name, got, want)
			}
		}
	}
	for _, name := range []string{"hook", "delete a start-up name"} {
		if d, err := r.describe(calls[name]); err != nil || d.Wide != nil || slices.Contains(d.Scopes, consent.Always) {
			t.Errorf("%s: %v, offers %+v and %v", name, err, d.Wide, d.Scopes)
		}
	}
}
