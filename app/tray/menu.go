package tray

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"localpc/app/snapshot"
)

// The places in the menu, from top to bottom.
const (
	slotState = iota
	slotTrusted
	slotDenied
	slotWaiting
	slotFix
	slotPause
	slotStop
	slotCapabilities // with those of them below
	slotActivity
	slotPermissions
	slotSettings
	slotConnect
	slotPair
	slotQuit

	// In the menu of slotCapabilities.
	slotMeaning
	slotFirst
	slots = slotFirst + maxCapabilities
)

// maxCapabilities is how many fit into the menu.
const maxCapabilities = 8

// entry is one place in the menu.
type entry struct {
	label  string
	shown  bool
	intent snapshot.Intent // none for text
	ticked bool            // of a capability: it may be asked for
}

// view is all that the tray shows; two equal ones look the same.
type view struct {
	icon    string
	tip     string
	entries [slots]entry
}

// look is how a snapshot is shown.
func look(s snapshot.Snapshot) view {
	if s.State == "" {
		s.State = snapshot.Offline
	}
	if s.Control != nil && s.State == snapshot.Online {
		s.State = snapshot.Working // also between two actions
	}
	line := stateLine(s)
	v := view{icon: string(s.State), tip: line}
	put := func(slot int, label string, in snapshot.Intent) {
		v.entries[slot] = entry{label: label, shown: label != "", intent: in}
	}
	put(slotState, line, snapshot.Intent{})
	put(slotTrusted, trustedLabel(s.Sessions), window(snapshot.WindowPermissions))
	put(slotDenied, deniedLabel(s.Sessions), window(snapshot.WindowPermissions))
	put(slotWaiting, waitingLabel(s.Waiting), snapshot.Intent{Kind: snapshot.ShowCard})
	v.entries[slotFix] = fixEntry(s)
	put(slotPause, "Pause", snapshot.Intent{Kind: snapshot.Pause})
	if s.Paused || s.Stopped != nil {
		put(slotPause, "Resume", snapshot.Intent{Kind: snapshot.Resume})
	}
	put(slotStop, "Stop everything", snapshot.Intent{Kind: snapshot.StopAll, Text: snapshot.WindowActivity})
	capabilityEntries(&v, s.Capabilities)
	put(slotActivity, "Activity…", window(snapshot.WindowActivity))
	put(slotPermissions, "Permissions…", window(snapshot.WindowPermissions))
	put(slotSettings, "Settings…", window(snapshot.WindowSettings))
	put(slotPair, "Pair…", window(snapshot.WindowPair))
	switch {
	case s.Hub.Paired:
		put(slotConnect, connectLabel(s), window(snapshot.WindowPair))
		put(slotPair, "Unpair", snapshot.Intent{Kind: snapshot.Unpair})
	case s.Connect.SignIn != nil:
		v.entries[slotPair].label = "Show the sign-in…"
	}
	put(slotQuit, "Quit", snapshot.Intent{Kind: snapshot.Quit})
	return v
}

func window(name string) snapshot.Intent {
	return snapshot.Intent{Kind: snapshot.ShowWindow, Text: name}
}

// capabilityEntries are the ticks: what may be asked for. A click takes one from
// never to its widest extent, and from any other to never.
func capabilityEntries(v *view, all []snapshot.Capability) {
	if len(all) == 0 {
		return
	}
	v.entries[slotCapabilities] = entry{label: "Capabilities", shown: true}
	v.entries[slotMeaning] = entry{label: "Ticked: may be asked for", shown: true}
	for i, c := range all[:min(len(all), maxCapabilities)] {
		e := entry{label: plain(c.Label, 30), shown: len(c.Extents) > 0, ticked: c.Extent != off}
		e.intent = snapshot.Intent{Kind: snapshot.SetCapability, Text: c.Name, Way: off}
		for j, extent := range c.Extents {
			switch {
			case j == 0 && !e.ticked:
				e.intent.Way = extent.Value
			case j > 0 && e.ticked && extent.Value == c.Extent:
				e.label += ": " + strings.ToLower(plain(extent.Label, 30))
			}
		}
		v.entries[slotFirst+i] = e
	}
}

// off is the extent of what is never asked for.
const off = "off"

// trustedLabel says how long the session that is trusted longest is so. The
// time of the clock does not change each second.
func trustedLabel(sessions []snapshot.Session) string {
	var until time.Time
	for _, s := range sessions {
		if s.TrustedUntil.After(until) {
			until = s.TrustedUntil
		}
	}
	if until.IsZero() {
		return ""
	}
	return "Trusted until " + until.Local().Format("15:04")
}

// deniedLabel names a session that keeps being denied.
func deniedLabel(sessions []snapshot.Session) string {
	for _, s := range sessions {
		if s.Denied >= snapshot.DeniedOften {
			return plain(s.Principal, 24) + " keeps being denied: show"
		}
	}
	return ""
}

// connectLabel is where the Pair window leads from a computer that is paired.
func connectLabel(s snapshot.Snapshot) string {
	switch {
	case s.Connect.SignIn != nil:
		return "Show the sign-in…"
	case s.State == snapshot.SignIn || s.Fix == snapshot.Pair:
		return "Sign in again…"
	case s.Hub.Kind == "autogpt":
		return "Use in AutoGPT…"
	}
	return "Connect a program…"
}

// stateLine is the state in a few words, and whose machine this is.
func stateLine(s snapshot.Snapshot) string {
	line := plain(s.Line, 48)
	switch {
	case s.Connect.SignIn != nil && s.Waiting == 0:
		line = "Signing in…"
	case s.Control != nil && s.Waiting == 0 && !s.Paused && s.Stopped == nil:
		line = controlLine(*s.Control)
	case line == "":
		line = stateWord(s.State)
	}
	if name := plain(s.Machine, 24); name != "" {
		line += " · " + name
	}
	return line
}

// controlLine says who sees the screen, or has mouse and keyboard.
func controlLine(c snapshot.Control) string {
	who := plain(c.Who, 24)
	if who == "" {
		who = "A program"
	}
	switch {
	case c.Person:
		return "You took over; " + who + " waits"
	case c.Acts:
		return who + " is using this computer"
	}
	return who + " sees your screen"
}

// stateWord names a state where the snapshot has no words of its own.
func stateWord(s snapshot.State) string {
	switch s {
	case snapshot.Online:
		return "Online"
	case snapshot.Working:
		return "Working"
	case snapshot.NeedsYou:
		return "Needs you"
	case snapshot.Paused:
		return "Paused"
	case snapshot.SignIn:
		return "Sign in again"
	}
	return "Offline"
}

func waitingLabel(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%d waiting: show", n)
}

// fixEntry is what mends a problem, unless the menu has that already.
func fixEntry(s snapshot.Snapshot) entry {
	label := plain(s.FixLabel, 40)
	switch s.Fix {
	case "", snapshot.Pair, snapshot.Unpair, snapshot.Pause, snapshot.Resume, snapshot.ShowCard, snapshot.Quit:
		return entry{}
	}
	return entry{label: label, shown: label != "", intent: snapshot.Intent{Kind: s.Fix}}
}

// plain makes text of other people fit for a menu: no control or direction
// marks, one line, at most limit characters.
func plain(s string, limit int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = n > 0
			continue
		}
		if !unicode.IsPrint(r) { // also the marks that turn text around
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n++; n > limit {
			return strings.TrimSpace(b.String()) + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}
