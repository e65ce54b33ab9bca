package kept

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"localpc/consent"
)

// longRun is how long a command may run before it counts that others may have
// worked in the folder meanwhile.
const longRun = time.Minute

// sharedRun is the same where it is known that others of ours worked there.
const sharedRun = 2 * time.Second

// Ask says what undoing requests, the newest first, would overwrite: a question
// to the person, "" when there is nothing to be asked. It changes nothing.
func (k *Kept) Ask(ctx context.Context, requests []string) (question string, err error) {
	k.undoing.Lock()
	defer k.undoing.Unlock()
	w, err := k.undo("", requests)
	if err != nil {
		return "", err
	}
	defer w.folder.close()
	var newer, ruined []string
	at, inPlace := touchedNames{}, false
	for _, of := range w.of {
		steps, err := k.steps(ctx, of.Request)
		if err != nil {
			return "", err
		}
		for _, st := range slices.Backward(steps) {
			if st.Made && k.ruined(st) {
				ruined = append(ruined, st.Rel)
			}
			// What a later step of these is about is looked at when that has
			// been undone.
			if st.Made && !at.related(st.Rel) {
				// A file that was written in place has other names, which the
				// steps do not tell.
				if now, err := w.now(ctx, st); err == nil && !now.equal(st.After) && !now.equal(st.Before) && !(inPlace && w.shared(st.Rel)) {
					newer = append(newer, st.Rel)
				}
			}
			inPlace = inPlace || st.InPlace
			at.add(st.Rel)
			if st.From != "" {
				at.add(st.From)
			}
		}
	}
	return w.question(newer, ruined), nil
}

// question puts what there is to ask into words.
func (w *undo) question(newer, ruined []string) string {
	var words []string
	if len(newer) > 0 {
		words = append(words, listed(newer)+" changed after this, by you or another program.")
	}
	if len(ruined) > 0 {
		words = append(words, "The old version of "+listed(ruined)+" was changed since, by a program that still had it open: what is put back is not what was there.")
	}
	long, shared := time.Duration(0), false
	for _, of := range w.of {
		long, shared = max(long, of.about.Long), shared || of.about.Shared && len(w.of) == 1
	}
	if long >= longRun {
		words = append(words, fmt.Sprintf("A command ran for %d minutes; all that changed in the folder in that time is put back, your own changes too.", int(long.Minutes())))
	} else if shared {
		words = append(words, "Others worked in the folder while this command ran; what they changed then may be put back, too.")
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, " ") + " Undo it all the same? What is there now is kept, too."
}

// listed names the first few.
func listed(all []string) string {
	var names []string
	for _, n := range all[:min(3, len(all))] {
		names = append(names, consent.Visible(n, false))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// touchedNames are names that steps are about.
type touchedNames struct{ exact, above map[string]bool }

func (t *touchedNames) add(rel string) {
	if t.exact == nil {
		t.exact, t.above = map[string]bool{}, map[string]bool{}
	}
	t.exact[rel] = true
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		t.above[up] = true
	}
}

func (t *touchedNames) related(rel string) bool {
	if t.exact[rel] || t.above[rel] {
		return true
	}
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		if t.exact[up] {
			return true
		}
	}
	return false
}
