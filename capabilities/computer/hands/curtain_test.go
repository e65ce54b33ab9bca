package hands_test

import (
	"testing"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
)

func TestCurtain(t *testing.T) {
	usual := hands.Curtain{Words: hands.Usual}
	for _, c := range []struct {
		w     space.Window
		usual bool
	}{
		{space.Window{Class: "KeePassXC", App: "keepassxc", Title: "Passwords"}, true},
		{space.Window{Class: "org.gnome.World.Secrets"}, true},
		{space.Window{Class: "gcr-prompter", Title: "Unlock Keyring"}, true},
		{space.Window{Class: "pinentry-gtk-2"}, true},
		{space.Window{Class: "polkit-kde-authentication-agent-1"}, true},
		{space.Window{App: "mate-polkit"}, true},
		{space.Window{App: "polkit-mate-authentication-agent-1"}, true},
		{space.Window{App: "xfce-polkit"}, true},
		{space.Window{App: "lxqt-policykit-agent"}, true},
		{space.Window{App: "pinentry-qt5"}, true},
		{space.Window{App: "pinentry-x11"}, true},
		{space.Window{App: "pinentry-fltk"}, true},
		{space.Window{App: "ksecretd"}, true},
		{space.Window{Class: "firefox", App: "Firefox", Title: "Bank — Mozilla Firefox (Private Browsing)"}, true},
		{space.Window{Class: "firefox", App: "Firefox", Title: "Bank — Mozilla Firefox Private Browsing"}, true},
		{space.Window{Class: "firefox", App: "Firefox", Title: "What private browsing is — Mozilla Firefox"}, false},
		{space.Window{Class: "google-chrome", Title: "Neuer Tab – Google Chrome (Inkognito)"}, true},
		{space.Window{Class: "msedge", Title: "New tab - [InPrivate] - Microsoft Edge"}, true},
		{space.Window{Class: "google-chrome", Title: "New Tab - Google Chrome (Incognito)"}, true},
		{space.Window{Class: "firefox", App: "Firefox", Title: "How 1password works — Mozilla Firefox"}, false},
		{space.Window{Class: "consent-form-editor", Title: "consent"}, false},
		{space.Window{Class: "gedit", App: "gedit", Title: "notes"}, false},
		{space.Window{}, false},
	} {
		if got := usual.Hides(c.w); got != c.usual {
			t.Errorf("%+v: %v", c.w, got)
		}
	}
	private := space.Window{Class: "firefox", Title: "Bank — Mozilla Firefox Private Browsing"}
	if !usual.Hides(space.Window{Class: "firefox", Title: "Save as", Of: []space.Window{{Class: "firefox"}, private}}) || usual.Hides(space.Window{Title: "Save as", Of: []space.Window{{Class: "firefox"}}}) {
		t.Error("what belongs to a hidden window is not hidden, or something else is")
	}
	own := hands.Curtain{Words: []string{" SIGNAL ", "", "=", "  ", "=Gedit"}}
	for title, want := range map[string]bool{"Signal (3)": true, "a signal": true, "sign": false, "": false, "gedit": false} {
		if got := own.Hides(space.Window{Title: title}); got != want {
			t.Errorf("title %q: %v", title, got)
		}
	}
	if !own.Hides(space.Window{Class: "gedit"}) || !own.Hides(space.Window{App: "GEDIT"}) || own.Hides(space.Window{Class: "gedit2"}) || !own.Hides(space.Window{Class: "signal-desktop"}) {
		t.Error("whole words are not whole, or parts are not parts")
	}
	if (hands.Curtain{}).Hides(space.Window{Title: "anything"}) {
		t.Error("an empty list hides something")
	}
}
