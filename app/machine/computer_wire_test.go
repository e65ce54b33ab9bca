package machine

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	client "localpc/tunnel/autogpt"
	platformend "localpc/tunnel/hub/autogpt"
	hubstore "localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// helloHub is a platformHub that keeps what a machine says of itself.
type helloHub struct {
	*platformHub
	hello chan autogpt.Hello
}

func (h *helloHub) Joined(ctx context.Context, m *platformend.Machine) error {
	h.hello <- m.Hello
	return h.platformHub.Joined(ctx, m)
}

// TestComputerOverTheWire joins a strict hub of AutoGPT's wire, the tunnel, the
// gate and the real executor: a chat sees the screen that its person shares,
// acts on it, and is refused in the protocol's own words.
func TestComputerOverTheWire(t *testing.T) {
	d := newDisplay()
	exec := computer.New(computer.Options{Hands: d})
	m := newMachine(t)
	paths := m.o.Paths
	must(t, m.o.Store.Close())
	m = openMachine(t, paths, func(o *Options) {
		o.Hands, o.Executors = d, []capabilities.Capability{exec}
		o.Display = func() Display {
			return Display{Does: autogpt.Does{Pictures: true, Input: true, Windows: true, Clipboard: true}, Width: 1920, Height: 1080}
		}
	})
	r := &chatRig{T: t, m: m, folder: filepath.Join(os.Getenv("HOME"), "project")}
	must(t, os.Mkdir(r.folder, 0o755))
	r.join()
	m.registry = capabilities.NewRegistry(append([]capabilities.Capability{m.sessions, r.c, exec}, m.o.Executors...)...)
	t.Cleanup(func() { must(t, exec.Close()) })
	r.says(func(q consent.Request) (consent.Answer, bool) {
		a := r.yes(q, consent.Once)
		if q.Capability != consent.CapabilitySession && slices.Contains(q.Scopes, consent.Session) {
			a = r.yes(q, consent.Session)
		}
		if len(q.Screens) > 0 {
			a.Choice.Screens = "DP-1"
		}
		return a, true
	})

	h := &helloHub{&platformHub{bindings: map[string]hubstore.Binding{}, joined: make(chan struct{}, 4)}, make(chan autogpt.Hello, 4)}
	face := platformend.New(t.Context(), platformend.Options{Hub: h, Strict: true, Log: m.log})
	srv := httptest.NewServer(face.Handler())
	defer srv.Close()
	defer face.Close()
	id := m.o.Settings.Get().MachineID
	tun, err := client.New(client.Options{URL: srv.URL, HubName: "AutoGPT", Log: m.log, Folders: r.c, Handler: r.c.Handler, OnStopped: r.c.Stopped,
		Token: func(context.Context) (string, error) { return "t", nil }, Hello: (&link{m: m}).helloAutoGPT,
		Timings: client.Timings{BackoffBase: 10 * time.Millisecond}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- tun.Run(ctx) }()
	defer func() {
		cancel()
		must(t, within(t, "the tunnel to end", over))
	}()
	hello := within(t, "the machine to join", h.hello)
	r.until("the machine to be there", func() bool {
		_, err := face.Browse(ctx, "u", id, autogpt.DirectoryList{})
		return wire.CodeOf(err) != wire.CodeOffline
	})
	if !hello.Advertises("input") || hello.Advertises("telepathy") || *hello.ScreenResolution != (autogpt.Resolution{1920, 1080}) {
		t.Errorf("it says it has %v, %v", hello.Coarse, hello.Features)
	}
	browse, ref, err := face.Walk(ctx, "u", id, r.folder)
	must(t, err)
	const chat = "7d0c2f6e-1a34-4f0b-9a53-2f2f5f7c1b10"
	b, err := face.Attach(ctx, "u", id, autogpt.Attach{SessionID: chat, BrowseID: browse, DirectoryRef: ref})
	must(t, err)
	h.keep(id, b)
	_, err = face.Activate(ctx, "u", id, autogpt.Activate{SessionID: chat, Revision: b.Revision})
	must(t, err)
	must(t, face.Await(ctx, chat, 10*time.Second))

	do := func(kind autogpt.Type, p wire.Payload) wire.Payload {
		t.Helper()
		got, err := face.Do(ctx, chat, kind, p)
		if err != nil {
			t.Fatalf("%s: %v (%s)", kind, err, autogpt.CodeOf(err))
		}
		return got.Payload
	}
	refused := func(kind autogpt.Type, p wire.Payload, code wire.Code) map[string]any {
		t.Helper()
		_, err := face.Do(ctx, chat, kind, p)
		var e *autogpt.Detailed
		if !errors.As(err, &e) || e.Code != code {
			t.Fatalf("%s: %v (%s), want %s", kind, err, autogpt.CodeOf(err), code)
		}
		return e.Details
	}

	shot := do(autogpt.TypeScreenshot, &autogpt.Screenshot{Quality: 75, Format: "png"}).(*autogpt.ScreenshotImage)
	raw, err := base64.StdEncoding.DecodeString(shot.Image)
	must(t, err)
	if c, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil || c.Width != 1920 || c.Height != 1080 || shot.Width != 1920 || shot.Meta.Origin != (autogpt.Pair{}) || *shot.LogicalSize != (autogpt.Pair{1920, 1080}) {
		t.Errorf("%+v, %v: %+v", c, err, shot.Meta)
	}
	part := do(autogpt.TypeScreenshot, &autogpt.Screenshot{Quality: 75, Format: "png", Region: &autogpt.Rect{1900, 1000, 2000, 1200}}).(*autogpt.ScreenshotImage)
	if part.Width != 20 || part.Height != 80 || part.Meta.Origin != (autogpt.Pair{1900, 1000}) || *part.Region != (autogpt.Rect{1900, 1000, 2000, 1200}) {
		t.Errorf("%d × %d, %+v, %+v", part.Width, part.Height, part.Meta, part.Region)
	}
	// A monitor that is not there is the first one; one that is not shared is not seen.
	if far := do(autogpt.TypeScreenshot, &autogpt.Screenshot{Monitor: 9, Quality: 75, Format: "png"}).(*autogpt.ScreenshotImage); far.Monitor != 0 || far.Width != 1920 {
		t.Errorf("monitor 9: %d, %d wide", far.Monitor, far.Width)
	}
	refused(autogpt.TypeScreenshot, &autogpt.Screenshot{Monitor: 1, Quality: 75, Format: "png"}, autogpt.CodeNotGranted)
	refused(autogpt.TypeScreenshot, &autogpt.Screenshot{Quality: 75, Format: "png", Region: &autogpt.Rect{5000, 0, 6000, 10}}, autogpt.CodeNotSupported)

	do(autogpt.TypeInput, &autogpt.Input{Action: "double_click", Coordinate: &autogpt.Pair{5, 6}, Modifiers: []string{"ctrl"}})
	do(autogpt.TypeInput, &autogpt.Input{Action: "type", Text: new("grüße ✓")})
	do(autogpt.TypeInput, &autogpt.Input{Action: "key", Key: new("Ctrl+S")})
	acts := of(d, func() []hands.Action { return slices.Clone(d.acts) })
	if len(acts) != 3 || *acts[0].At != image.Pt(5, 6) || acts[0].Count != 2 || !slices.Equal(acts[0].Modifiers, []string{"ctrl"}) || acts[1].Text != "grüße ✓" || acts[2].Chord != "ctrl+s" {
		t.Errorf("done: %+v", acts)
	}
	details := refused(autogpt.TypeInput, &autogpt.Input{Action: "left_click", Coordinate: &autogpt.Pair{1 << 22, 7}}, autogpt.CodeOutOfBounds)
	if got := fmt.Sprint(details["requested_coordinate"], details["displays"]); got != "[4.194304e+06 7] [map[index:0 origin:[0 0] size:[1920 1080]]]" {
		t.Errorf("out of bounds: %s", got)
	}
	if details := refused(autogpt.TypeInput, &autogpt.Input{Action: "left_click"}, autogpt.CodeNotSupported); details["feature"] != "input.click" {
		t.Errorf("without a place: %v", details)
	}
	d.set(func() { d.actErr = wire.Errorf(wire.CodePerson, "The person uses the mouse.") })
	if details := refused(autogpt.TypeInput, &autogpt.Input{Action: "left_click", Coordinate: &autogpt.Pair{5, 6}}, autogpt.CodePending); details["reason"] != "person_active" || details["hint"] == "" {
		t.Errorf("the person's hands: %v", details)
	}
	if info := do(autogpt.TypeDisplays, &autogpt.Empty{}).(*autogpt.DisplayInfo); len(info.Monitors) != 2 || info.Monitors[1].Origin != (autogpt.Pair{-600, 0}) {
		t.Errorf("%+v", info)
	}
	if at := do(autogpt.TypeCursor, &autogpt.Empty{}).(*autogpt.CursorPosition); at.X != 1 || at.Y != 1 {
		t.Errorf("%+v", at)
	}
	do(autogpt.TypeWindows, &autogpt.Windows{})
	refused(autogpt.TypeWindowFocus, &autogpt.WindowFocus{WindowID: "win_1", Raise: true}, autogpt.CodeWindowStale)
	do(autogpt.TypeClipboardWrite, &autogpt.ClipboardWrite{Format: "text", Content: "mine"})
	if details := refused(autogpt.TypeClipboardRead, &autogpt.ClipboardRead{Format: "text"}, autogpt.CodeConcealed); details["reason"] != "writeback_overwritten" {
		t.Errorf("the clipboard: %v", details)
	}
	if p := do(autogpt.TypePermissions, &autogpt.Permissions{Permissions: autogpt.List[string]{"screen_recording", "telepathy"}}).(*autogpt.PermissionStates); p.Permissions["telepathy"] != "not_applicable" || p.Permissions["screen_recording"] == "" {
		t.Errorf("%v", p.Permissions)
	}
	if !face.Connected(chat) || len(h.hello) > 0 {
		t.Error("the strict hub dropped it")
	}
	must(t, face.Detach(ctx, "u", id, chat))
}
