package machine

import (
	"fmt"
	"net/http"
	"strings"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
)

// checkComputer tells whether what is to be set for screen, mouse and keyboard
// can be.
func checkComputer(c *snapshot.Changes) error {
	if c.Clipboard != nil && *c.Clipboard != "own" && *c.Clipboard != "all" && *c.Clipboard != "off" {
		return sentence("Of the clipboard either what a program put there itself may be read, or all, or nothing.")
	}
	if c.Hide != nil && settings.CheckHide(*c.Hide) != nil {
		return sentence(upper(settings.ErrHide.Error()) + ".")
	}
	return nil
}

func changesComputer(c *snapshot.Changes) bool {
	return c.PerAction != nil || c.Clipboard != nil || c.Hide != nil || c.HideUsual != nil || c.Remote != nil
}

// computerWords are what is changed, for the record.
func computerWords(c *snapshot.Changes) string {
	var out []string
	add := func(name string, v any) { out = append(out, fmt.Sprintf("%s: %v", name, v)) }
	if c.PerAction != nil {
		add("each action is asked for", *c.PerAction)
	}
	if c.Clipboard != nil {
		add("clipboard", *c.Clipboard)
	}
	if c.Hide != nil {
		add("windows to hide", strings.Join(settings.WordsOf(*c.Hide).List(), ", "))
	}
	if c.HideUsual != nil {
		add("the usual windows are hidden", *c.HideUsual)
	}
	if c.Remote != nil {
		add("remote control may answer cards", *c.Remote)
	}
	return strings.Join(out, "; ")
}

func setComputer(s *settings.Computer, c *snapshot.Changes) {
	if c.PerAction != nil {
		s.PerAction = *c.PerAction
	}
	if c.Clipboard != nil {
		s.Clipboard = *c.Clipboard
	}
	if c.Hide != nil {
		s.Hide = settings.WordsOf(*c.Hide)
	}
	if c.HideUsual != nil {
		s.HideUsual = *c.HideUsual
	}
	if c.Remote != nil {
		s.RemoteAnswers = *c.Remote
	}
}

// pictureType is the MIME type of a picture that was sent, "" where what was
// sent is none.
func pictureType(e snapshot.Entry, sent []byte) string {
	if e.Capability != consent.CapabilityComputer {
		return ""
	}
	if typ := http.DetectContentType(sent); typ == "image/jpeg" || typ == "image/png" {
		return typ
	}
	return ""
}

// chosenOf are the screens that a card of r has chosen beforehand, all where it
// has none.
func chosenOf(r consent.Request) string {
	var chosen, all []string
	for _, s := range r.Screens {
		if all = append(all, s.Name); s.Chosen {
			chosen = append(chosen, s.Name)
		}
	}
	if chosen == nil {
		chosen = all
	}
	return consent.JoinScreens(chosen)
}
