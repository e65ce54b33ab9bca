//go:build unix

package autogpt_test

import (
	"context"
	"testing"

	"localpc/tunnel"
	machineend "localpc/tunnel/autogpt"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Our own machine end answers each request about the computer with what a
// strict hub takes, to the letter, and refuses with the details that the
// protocol has.
func TestOurMachinesDesktopIsStrict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sent := seen{machine: true}
	const window = "win_3f0f3b34-6f0e-4b0c-9d55-6f5f0c6c8a11"
	answers := map[wire.Type]wire.Payload{
		wire.TypeScreenshot:  &wire.ScreenshotResponse{Picture: "p", Image: []byte("PNG"), MIMEType: "image/png", Width: 2, Height: 2, Shows: wire.Rect{1, 2, 3, 4}, DisplayScale: 1, LogicalSize: &wire.Point{1280, 720}},
		wire.TypeInput:       &wire.Empty{},
		wire.TypeCursor:      &wire.CursorResponse{X: 10, Y: 20},
		wire.TypeDisplays:    &wire.DisplaysResponse{Monitors: []wire.Monitor{{Primary: true, PhysicalSize: wire.Point{1280, 720}, LogicalSize: wire.Point{1280, 720}, Scale: 1}}},
		wire.TypeWindows:     &wire.WindowsResponse{Windows: []wire.Window{{WindowID: window, PID: 4, Bounds: wire.Rect{0, 0, 640, 480}}}},
		wire.TypeWindowFocus: &wire.Empty{}, wire.TypeAppLaunch: &wire.AppLaunched{PID: 7}, wire.TypeClipWrite: &wire.Empty{},
		wire.TypeApps:        &wire.AppsResponse{Apps: []wire.App{{PID: 4, Name: "Editor"}}},
		wire.TypeClipRead:    &wire.ClipReadResponse{Format: "text", Content: "copied", SizeBytes: 6},
		wire.TypePermissions: &wire.PermissionsResponse{Permissions: map[string]string{"accessibility": "granted"}},
	}
	dir := ourMachine(t, newRelay(t, r.url, sent.saw).url, r.token("s1"), nil, func(o *machineend.Options) {
		hello := o.Hello()
		hello.Features, hello.Coarse = msg.FeaturesOf(msg.Does{Pictures: true, Input: true, Windows: true, Clipboard: true})
		hello.Capabilities = append(hello.Capabilities, msg.ComputerUse)
		o.Hello = func() msg.Hello { return hello }
		files := o.Handler
		o.Handler = func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
			p, ok := answers[m.Type]
			if !ok {
				return files(ctx, m, x)
			}
			if a, ok := m.Payload.(*wire.InputAction); ok && a.Coordinate != nil && a.Coordinate[0] < 0 {
				return "", nil, wire.Errorf(wire.CodeBounds, "That is outside of every screen.").With(map[string]any{"requested_coordinate": a.Coordinate,
					"displays": []map[string]any{{"index": 0, "origin": []int{0, 0}, "size": []int{1280, 720}}}})
			}
			if a, ok := m.Payload.(*wire.AppLaunch); ok && a.BundleID != "" {
				return "", nil, wire.Errorf(wire.CodeNotSupported, "This computer is no Mac.")
			}
			if !x.Begin() {
				return "", nil, wire.Errorf(wire.CodePending, "Nobody waits any more.")
			}
			return m.Type, p, nil
		}
	})
	eventually(t, "our machine is connected", func() bool { return len(r.Machines(user)) == 1 })
	if m := r.Machines(user)[0]; !m.Hello.Advertises("input") || len(m.Hello.Features) != len(msg.Features) {
		t.Errorf("it says it has %v and %v", m.Hello.Features, m.Hello.Coarse)
	}
	r.open(chat, dir)
	everyDesktop(t, r)
	fails(t, r, msg.TypeWindowFocus, &msg.WindowFocus{WindowID: "win_0"}, msg.CodeWindowStale)
	if len(r.Machines(user)) != 1 || !r.Connected(chat) {
		t.Error("the strict hub dropped it")
	}
	sent.exact(t)
}
