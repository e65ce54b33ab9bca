package files

import (
	"fmt"
	"slices"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// payload is what a digest is made of: everything that decides what runs. One
// shape for all requests, so that no two kinds can have the same digest.
type payload struct {
	Type   wire.Type `json:"type"`
	Path   string    `json:"path"`
	Dst    string    `json:"dst,omitempty"`
	Offset int64     `json:"offset,omitempty"`
	Length *int64    `json:"length,omitempty"`
	Depth  int       `json:"depth,omitempty"`
	// Options are those of the request that are set, by their wire names.
	Options []string `json:"options,omitempty"`
	Size    int64    `json:"size,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	// Metadata is that of a write.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Search is what a search looks for.
	Search *search `json:"search,omitempty"`
}

// search is what a FILE_SEARCH looks for.
type search struct {
	Name       string `json:"name"`
	Text       string `json:"text"`
	Regexp     bool   `json:"regexp"`
	IgnoreCase bool   `json:"ignore_case"`
	Max        int    `json:"max"`
}

// options are the names of what is set: "no_follow", true, "follow", false.
func options(all map[string]bool) []string {
	var set []string
	for name, on := range all {
		if on {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	return set
}

// print is where a name leads and what is there, for fingerprints.
func (p place) print() string {
	s := p.key() + "\x00"
	if !p.exists() {
		return s + fmt.Sprintf("missing %d", p.missing)
	}
	return s + p.node.print()
}

// looksOnly describes a request that changes nothing.
func looksOnly(action, title, sentence, text string, p place) capabilities.Description {
	return capabilities.Description{
		Action: action, Title: title, Sentence: sentence, Exact: text, Risk: consent.RiskLow,
		Rule:   capabilities.RuleParts{Exact: p.key()},
		Scopes: []consent.Scope{consent.Session, consent.Minutes15, consent.Always},
		Wide:   &capabilities.Wide{Effects: []consent.EffectKind{consent.EffectRead}, Words: "reading in this folder"},
	}
}

// changes describes a request that changes something. At high risk neither
// "always" is offered nor a broader rule; and what deletes is never allowed
// always, as long as it can't be undone.
func changes(action, title, sentence, text, rule string, risk consent.Risk) capabilities.Description {
	d := capabilities.Description{
		Action: action, Title: title, Sentence: sentence, Exact: text, Risk: risk,
		Rule:   capabilities.RuleParts{Exact: rule},
		Scopes: []consent.Scope{consent.Session, consent.Minutes15},
	}
	if risk >= consent.RiskHigh {
		return d
	}
	if action != "delete" {
		d.Scopes = append(d.Scopes, consent.Always)
	}
	d.Wide = direction(action)
	return d
}

// direction is the broader rule beside one for a single name. It goes no
// further than what was asked for, and never to names that other programs run.
func direction(action string) *capabilities.Wide {
	w := &capabilities.Wide{Effects: []consent.EffectKind{consent.EffectRead, consent.EffectCreate, consent.EffectOverwrite}}
	switch action {
	case "delete":
		w.Effects = append(w.Effects, consent.EffectMove, consent.EffectDelete)
		w.Words = "reading, making, changing, moving and deleting files in this folder"
	case "move":
		w.Effects = append(w.Effects, consent.EffectMove)
		w.Words = "reading, making, changing and moving files in this folder, not deleting them"
	default:
		w.Words = "reading, making and changing files in this folder, not moving or deleting them"
	}
	return w
}

// runsElsewhere is the effect of changing names that other programs run.
func runsElsewhere(names []string) consent.Effect {
	text := short(names[0]) + " is run by other programs"
	if n := len(names); n > 1 {
		text = fmt.Sprintf("%s and %d more names are run by other programs", short(names[0]), n-1)
	}
	return consent.Effect{Kind: consent.EffectStartup, Text: text, Count: len(names)}
}

// startupNotes are sentences for the log.
func startupNotes(names []string) []string {
	var notes []string
	for _, n := range names {
		notes = append(notes, "changed "+shown(n)+", which other programs run")
	}
	return notes
}
