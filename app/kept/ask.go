package kept

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"localpc/consent"
)

// longRun is how long a command runs at least that a person is asked about: in
// less, nobody else will have changed something in the folder. Who did what
// while a command ran can't be told apart.
const longRun = 2 * time.Second

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
	var q asking
	seen, inPlace := later{}, false
	for _, of := range w.of {
		steps, err := k.steps(ctx, of.Request)
		if err != nil {
			return "", err
		}
		for _, st := range slices.Backward(steps) {
			// What a later step of these is about is looked at when that has
			// been undone. A file that was written in place has other names,
			// which the steps do not tell.
			if st.Made && !seen.related(st.Rel) && !(inPlace && w.shared(st.Rel)) {
				if now, err := w.folder.stateOf(ctx, st.Rel, st.deep()); err == nil && !now.equal(st.After) && !now.equal(st.Before) {
					q.newer = append(q.newer, st.Rel)
				}
			}
			if st.Made && st.From != "" && !seen.related(st.From) {
				if there, err := w.folder.stateOf(ctx, st.From, false); err == nil && there.Kind != kindNone {
					q.newer = append(q.newer, st.From)
				}
			}
			inPlace = inPlace || st.InPlace
			seen.add(st.Rel)
			if st.From != "" {
				seen.add(st.From)
			}
			if of.ran() > 0 && st.Made {
				q.during = append(q.during, st.Rel)
			}
		}
		q.long = max(q.long, of.ran())
	}
	return q.words(), nil
}

// shared tells whether what is at a name has others: when a step wrote to it in
// place, these are not told.
func (w *undo) shared(rel string) bool {
	n, err := w.folder.lstat(rel)
	return err == nil && (n.Kind == kindDir || n.Links > 1)
}

// asking is what there is to ask.
type asking struct {
	newer  []string // was worked on since
	during []string // changed while a command ran
	long   time.Duration
}

func (q *asking) words() string {
	var words []string
	if len(q.newer) > 0 {
		words = append(words, listed(q.newer)+" changed after this, by you or another program.")
	}
	if q.long > 0 {
		ran := fmt.Sprintf("%d seconds", int(q.long.Seconds()))
		if q.long >= 2*time.Minute {
			ran = fmt.Sprintf("%d minutes", int(q.long.Minutes()))
		}
		words = append(words, fmt.Sprintf("A command ran for %s. All that changed in the folder in that time counts as its work, also what you or others did: %s.", ran, listed(q.during)))
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, " ") + " Undo it all the same? What is there now is kept, too."
}

// listed names the first few.
func listed(all []string) string {
	slices.Sort(all)
	all = slices.Compact(all)
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

// later are the names that steps are about, and, as false, the folders that they
// are in.
type later map[string]bool

func (l later) add(rel string) {
	l[rel] = true
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		if _, known := l[up]; !known {
			l[up] = false
		}
	}
}

func (l later) related(rel string) bool {
	_, known := l[rel]
	for up := folderAbove(rel); up != "." && !known; up = folderAbove(up) {
		known = l[up]
	}
	return known
}
