package machine

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"localpc/consent"
	"localpc/tunnel/wire"
)

// What was shown is what ran: a script that is another one by the time of the
// answer is put before the person again, as it is then, and what was counted
// too.
func TestWhatIsShownIsWhatRuns(t *testing.T) {
	for name, c := range map[string]struct{ text, file, then, shown string }{
		"a script":           {"bash tidy.sh", "tidy.sh", "rm notes.txt; echo harmful\n", "Delete notes.txt"},
		"what it is to take": {"rm *.tmp", "b.tmp", "1", "Delete a.tmp and b.tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetRig(t, func(http.ResponseWriter, *http.Request) {})
			put := func(file, text string) { must(t, os.WriteFile(filepath.Join(n.folder, file), []byte(text), 0o644)) }
			put("notes.txt", "mine\n")
			put("a.tmp", "1")
			put("tidy.sh", "rm a.tmp; echo harmless\n")
			others := n.person.answer
			cards := 0
			n.person.answer = func(q consent.Request) (consent.Answer, bool) {
				a, now := others(q)
				if q.Capability != consent.CapabilityShell {
					return a, now
				}
				if cards++; cards == 1 {
					put(c.file, c.then) // while its card is open
					a.Choice = consent.Choice{Scope: consent.Once, Contain: consent.Contained}
					return a, now
				}
				return consent.Answer{Via: "card"}, now
			}
			wantCode(t, n.run(c.text, &said{}), wire.CodeDenied)
			all := n.person.seen()[1:]
			if len(all) != 2 || all[0].Title != "Delete a.tmp" || all[1].Title != c.shown || all[1].Exact != c.text {
				t.Errorf("the cards were %+v", all)
			}
			for _, file := range []string{"notes.txt", "a.tmp"} {
				if _, err := os.Stat(filepath.Join(n.folder, file)); err != nil {
					t.Errorf("what was not allowed ran: %v", err)
				}
			}
		})
	}
}
