package ui

import (
	"path/filepath"
	"slices"

	"localpc/app/desklink"
	"localpc/app/ui/kit"
	"localpc/consent"
)

type chip struct {
	shape, word string
	tone        kit.Tone
}

// capNetwork is the capability of a command's connections, by its name.
const capNetwork = "network"

// effectChip is a kind of effect in a few words, with a shape and a tone.
type effectChip struct {
	kind consent.EffectKind
	chip chip
}

// effectChipsByWeight are the kinds of effects, the gravest first. That a
// command runs is what its sentence says.
var effectChipsByWeight = []effectChip{
	{consent.EffectUnknown, chip{"◆", "Can't be told beforehand", kit.ToneRisk}},
	{consent.EffectRoot, chip{"◆", "Asks for administrator rights", kit.ToneRisk}},
	{consent.EffectStartup, chip{"◆", "Changes what other programs run", kit.ToneRisk}},
	{consent.EffectSettings, chip{"◆", "Changes settings", kit.ToneRisk}},
	{consent.EffectEnv, chip{"◆", "Changes its environment", kit.ToneRisk}},
	{consent.EffectDelete, chip{"◆", "Deletes files", kit.ToneRisk}},
	{consent.EffectOverwrite, chip{"▲", "Replaces contents", kit.ToneWarn}},
	{consent.EffectMove, chip{"▲", "Moves files", kit.ToneWarn}},
	{consent.EffectAccess, chip{"▲", "Changes who may open files", kit.ToneWarn}},
	{consent.EffectInstall, chip{"▲", "Installs or removes programs", kit.ToneWarn}},
	{consent.EffectConnect, chip{"▲", "Connects to others", kit.ToneWarn}},
	{consent.EffectControl, chip{"▲", "Uses mouse and keyboard", kit.ToneWarn}},
	{consent.EffectClipboard, chip{"▲", "Uses the clipboard", kit.ToneWarn}},
	{consent.EffectCreate, chip{"●", "Creates files", kit.ToneQuiet}},
	{consent.EffectRead, chip{"●", "Reads files", kit.ToneQuiet}},
}

// effectChips sum the effects up in a few words, the gravest first.
func effectChips(r consent.Request, full bool) []chip {
	switch r.Capability {
	case consent.CapabilityFolders:
		return []chip{{"●", "Names of folders, no contents", kit.ToneQuiet}}
	case capNetwork:
		return []chip{placeChip(r.Action)}
	}
	var out []chip
	own := false
	for _, e := range r.Effects {
		own = own || e.Own && e.Kind != consent.EffectRead && e.Kind != consent.EffectOwn
	}
	for _, c := range effectChipsByWeight {
		if hasEffect(r, c.kind) {
			out = append(out, c.chip)
		}
	}
	if own && gravest(r) == "" {
		out = append(out, chip{"●", "Only what it made itself", kit.ToneQuiet})
	}
	if full {
		return append(out, chip{"◆", "Full access", kit.ToneRisk})
	}
	if r.Containable {
		out = append(out, chip{"●", "No network unless you allow it", kit.ToneOK}, chip{"●", "Stays in " + folderWord(r.Folder), kit.ToneOK})
	}
	return out
}

// placeChip says where a connection goes, by the action of its request.
func placeChip(action string) chip {
	switch action {
	case "internet":
		return chip{"▲", "On the internet", kit.ToneWarn}
	case "home":
		return chip{"◆", "In your home network", kit.ToneRisk}
	case "local":
		return chip{"◆", "On this computer", kit.ToneRisk}
	case "link":
		return chip{"◆", "On the cable or wireless network here", kit.ToneRisk}
	}
	return chip{"◆", "It is not known where", kit.ToneRisk}
}

// placeNote warns of a place where who comes from this computer is often
// trusted; "" for none.
func placeNote(action string) string {
	switch action {
	case "internet":
		return ""
	case "home":
		return "This is another device in your own network, such as a router, a printer or a disk. Such devices often trust whoever comes from inside."
	case "local":
		return "This is a program on this very computer. Such programs often trust whoever comes from here, and ask for no password."
	case "link":
		return "This address exists only on the network that this computer is plugged into. Devices there often trust whoever reaches them."
	}
	return "It can't be told where this leads."
}

// hasEffect says whether a request does a thing to what its session has not made
// itself.
func hasEffect(r consent.Request, k consent.EffectKind) bool {
	return slices.ContainsFunc(r.Effects, func(e consent.Effect) bool { return e.Kind == k && !e.Own })
}

// gravest is the gravest kind of what a request changes; "" for none.
func gravest(r consent.Request) consent.EffectKind {
	for _, c := range effectChipsByWeight {
		if c.kind == consent.EffectRead {
			break
		}
		if hasEffect(r, c.kind) {
			return c.kind
		}
	}
	return ""
}

// allowWords name the button for what it does.
func allowWords(c desklink.Card, full bool) string {
	r, n := c.Request, asked(c)
	one, many := "Allow", "Allow all "+itoa(n)
	switch {
	case full:
		one, many = "Allow full access", "Allow full access, all "+itoa(n)
	case r.Capability == capNetwork:
		one, many = "Allow connection", "Allow "+itoa(n)+" connections"
	case hasEffect(r, consent.EffectDelete) && r.Action != "run":
		one, many = "Allow deletion", "Allow "+itoa(n)+" deletions"
	case hasEffect(r, consent.EffectDelete):
		one, many = "Allow deletion", "Allow all "+itoa(n)
	}
	if n > 1 {
		return many
	}
	return one
}

// folderWord is the name of a folder in a chip, where there is room for a short
// one.
func folderWord(folder string) string {
	if folder == "" {
		return "the folder"
	}
	const most = 24
	name := []rune(consent.Visible(filepath.Base(folder), false))
	if len(name) > most {
		name = append(name[:most-1], '…')
	}
	return string(name)
}
