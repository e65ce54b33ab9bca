package machine

import (
	"strings"

	"localpc/app/snapshot"
	"localpc/consent"
)

// foldBytes bounds the texts of the folded requests of one card: beyond that
// nobody reads them, and a message to the desktop has its limit.
const foldBytes = 64 << 10

// foldKey names the kind of a question: those of one kind go onto one card,
// which offers the same for all of them. "" goes alone: what is of high risk is
// looked at by itself, and a session card, or one about folders or the screen, has
// choices, or pictures, of its own.
func foldKey(r consent.Request) string {
	if r.Session == "" || r.Risk >= consent.RiskHigh || opens(r) || r.Capability == consent.CapabilityFolders || r.Capability == consent.CapabilityComputer {
		return ""
	}
	key := []string{r.Hub, r.Principal.ID, r.Session, r.Capability, r.Action, string(r.Mode), effectKinds(r.Effects), string(rune('0' + r.Risk))}
	if r.Containable {
		key = append(key, "containable")
	}
	if r.FullOffered {
		key = append(key, "full offered")
	}
	for _, s := range r.Scopes {
		key = append(key, string(s))
	}
	if r.Wide != nil {
		key = append(key, r.Wide.Key())
	}
	return strings.Join(key, "\x00")
}

// folded is what a card shows of a request that is not its head.
func folded(r consent.Request) snapshot.Folded {
	f := snapshot.Folded{ID: r.ID, Title: r.Title, Exact: r.Exact, Steps: r.Steps, Details: r.Details}
	for _, e := range r.Effects {
		f.Effects = append(f.Effects, e.Text)
	}
	return f
}

// foldSize is about how many bytes folded has.
func foldSize(r consent.Request) int {
	n := len(r.Title) + len(r.Exact)
	for _, texts := range [][]string{r.Steps, r.Details} {
		for _, t := range texts {
			n += len(t)
		}
	}
	return n
}
