package hands

import (
	"slices"
	"strings"

	"localpc/capabilities/computer/space"
)

// Curtain is which windows are blacked out in every picture.
type Curtain struct {
	// Words match a window whose class, program or title contains one of them,
	// whatever its case. A word that begins with "=" matches the class or the
	// program only, and whole.
	Words []string `json:"words,omitempty"`
}

// Usual are the windows that are hidden unless the person says otherwise:
// password managers, prompts of keychains, private browsing. Chromium and what
// is made of it have no word for a private window in its title on X11, nor
// anywhere else that other programs can see: those windows are not known there.
var Usual = []string{
	"=keepassxc", "=keepassx", "=keepass2", "=1password", "=bitwarden", "=enpass", "=org.gnome.World.Secrets", "=secrets",
	"=seahorse", "=gcr-prompter", "=gcr4-ssh-askpass", "=gnome-keyring-prompt", "=kwalletd5", "=kwalletd6", "=kwalletmanager5", "=ksshaskpass", "=ssh-askpass", "=pinentry", "=pinentry-gtk-2", "=pinentry-gnome3", "=pinentry-qt", "=pinentry-qt5", "=pinentry-x11", "=pinentry-fltk", "=ksecretd",
	"=polkit-gnome-authentication-agent-1", "=polkit-mate-authentication-agent-1", "=polkit-kde-authentication-agent-1", "=mate-polkit", "=xfce-polkit", "=lxqt-policykit-agent", "=lxpolkit", "=Keychain Access", "=SecurityAgent", "=CredentialUIBroker", "=consent",
	// As Firefox (also in German, French and Spanish), Safari, Edge and Chrome
	// title their windows.
	"Firefox Private Browsing", "Firefox Privater Modus", "Firefox (Privater Modus)", "Firefox Navigation privée", "Firefox (Navegación privada)", "Firefox Navegación privada",
	"(Inkognito)", "(Navigation privée)", "(Incógnito)",
	"(Private Browsing)", "Private Browsing —", "InPrivate", "(Incognito)", "Incognito –",
}

// Hides tells whether w is behind the curtain: by itself, or because a window is
// that it belongs to, as its menus and dialogs do.
func (c Curtain) Hides(w space.Window) bool {
	return c.names(w) || slices.ContainsFunc(w.Of, c.names)
}

func (c Curtain) names(w space.Window) bool {
	class, app, title := strings.ToLower(w.Class), strings.ToLower(w.App), strings.ToLower(w.Title)
	for _, word := range c.Words {
		word = strings.ToLower(strings.TrimSpace(word))
		if whole, ok := strings.CutPrefix(word, "="); ok {
			if whole != "" && (class == whole || app == whole) {
				return true
			}
			continue
		}
		if word != "" && (strings.Contains(class, word) || strings.Contains(app, word) || strings.Contains(title, word)) {
			return true
		}
	}
	return false
}
