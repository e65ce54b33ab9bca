package machine

import (
	"os"
	"runtime"
	"strings"

	"localpc/app/settings"
	"localpc/tunnel"
	"localpc/tunnel/autogpt"
	msg "localpc/tunnel/wire/autogpt"
)

// autoGPT is the client for AutoGPT's platform, of the parts that a tunnel to
// any hub has.
func (l *link) autoGPT(o tunnel.Options) (*autogpt.Client, error) {
	return autogpt.New(autogpt.Options{URL: o.URL, HubName: "AutoGPT", Token: o.Token, Rejected: o.Rejected, Fresh: o.Fresh, Network: o.Network, Log: o.Log,
		Hello: l.helloAutoGPT, Folders: l.m.chats, Handler: l.m.chats.Handler, OnState: o.OnState, OnStopped: l.m.chats.Stopped, RecordBytes: l.m.o.Store.Size})
}

// helloAutoGPT says what this machine is, in that protocol's words.
func (l *link) helloAutoGPT() msg.Hello {
	s := l.m.o.Settings.Get()
	h := msg.Hello{ShimVersion: "localpc-" + l.m.o.Version, MachineID: s.MachineID, DisplayName: s.Name, Platform: runtime.GOOS, Arch: "x86_64"}
	if runtime.GOARCH == "arm64" {
		h.Arch = "arm64"
	}
	if onWSL() {
		h.Platform = "wsl2"
	}
	for _, c := range l.m.registry.All() {
		if name := c.Name(); name == msg.Shell || name == msg.Files {
			h.Capabilities = append(h.Capabilities, name)
		}
	}
	if l.m.o.Display != nil {
		d := l.m.o.Display()
		if h.Features, h.Coarse = msg.FeaturesOf(d.Does); len(h.Coarse) > 0 {
			h.Capabilities = append(h.Capabilities, msg.ComputerUse)
			if d.Width > 0 && d.Height > 0 {
				h.ScreenResolution = &msg.Resolution{d.Width, d.Height}
			}
		}
	}
	return h
}

// Display is what this machine can do with its display, and the size of its
// first screen in device pixels; zero where that is not known.
type Display struct {
	msg.Does
	Width, Height int
}

// onWSL tells whether this Linux runs in Windows.
func onWSL() bool {
	v, err := os.ReadFile("/proc/version")
	return err == nil && strings.Contains(strings.ToLower(string(v)), "microsoft")
}

// idOf is what a hub is called in rules and the record. AutoGPT's platform may
// be set to be elsewhere: what one was allowed holds for no other, nor for
// another client there.
func idOf(hub string, s settings.Settings) string {
	a, usual := s.AutoGPT.Fill(), settings.DefaultAutoGPT
	if hub != settings.HubAutoGPT || a.Web == usual.Web && a.API == usual.API && a.WS == usual.WS && a.ClientID == usual.ClientID {
		return hub
	}
	return strings.Join([]string{hub, a.Web, a.API, a.WS, a.ClientID}, " ")
}

// addressOf is where a hub is, as a person knows it, and as its tunnel dials it.
func addressOf(hub string, s settings.Settings) (shown, dialled string) {
	if hub == settings.HubAutoGPT {
		return s.AutoGPT.Web, s.AutoGPT.WS
	}
	return hub, hub
}
