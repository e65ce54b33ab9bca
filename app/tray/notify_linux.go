package tray

import (
	"bytes"
	"context"
	"image"
	"image/draw"
	"image/png"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"localpc/assets"
)

const (
	notifications     = "org.freedesktop.Notifications"
	notificationsPath = "/org/freedesktop/Notifications"
)

// notes is the connection to the notification service, made when there is
// something to say.
type notes struct {
	conn    *dbus.Conn
	signals chan *dbus.Signal
	markup  bool   // the service reads the body as markup
	actions bool   // the service has buttons and clicks
	id      uint32 // of what is shown; 0: nothing
}

// run owns the connection until ctx ends.
func (n *Notifier) run(ctx context.Context) {
	var s notes
	defer func() {
		if s.conn != nil {
			s.hide(context.Background())
			s.conn.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			n.mu.Lock()
			want := n.want
			n.mu.Unlock()
			if err := s.apply(ctx, want); err != nil && ctx.Err() == nil {
				n.complain(err)
			}
		case sig, open := <-s.signals:
			if !open { // the bus is gone; the next notification tries again
				s = notes{}
				continue
			}
			if s.clicked(sig) {
				n.opts.Show()
			}
		}
	}
}

// apply shows or withdraws.
func (s *notes) apply(ctx context.Context, want message) error {
	if want == (message{}) {
		s.hide(ctx)
		return nil
	}
	if s.conn == nil {
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	body := want.body
	if s.markup {
		body = escape(body)
	}
	var actions []string
	if s.actions {
		actions = []string{"default", "Show"}
	}
	hints := map[string]dbus.Variant{
		"urgency":    dbus.MakeVariant(byte(1)),
		"transient":  dbus.MakeVariant(true), // worth nothing once the card is answered
		"image-data": dbus.MakeVariant(picture()),
	}
	ctx, cancel := context.WithTimeout(ctx, busLimit)
	defer cancel()
	return s.service().CallWithContext(ctx, notifications+".Notify", 0,
		name, s.id, "", want.title, body, actions, hints, int32(-1)).Store(&s.id)
}

func (s *notes) service() dbus.BusObject { return s.conn.Object(notifications, notificationsPath) }

func (s *notes) connect(ctx context.Context) error {
	// The connection outlives ctx by a moment, to withdraw what is shown.
	conn, err := connectBus(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, busLimit)
	defer cancel()
	var can []string
	err = conn.Object(notifications, notificationsPath).
		CallWithContext(ask, notifications+".GetCapabilities", 0).Store(&can)
	if err == nil {
		err = conn.AddMatchSignalContext(ask, dbus.WithMatchInterface(notifications), dbus.WithMatchObjectPath(notificationsPath))
	}
	if err != nil {
		conn.Close()
		return err
	}
	s.conn, s.signals, s.id = conn, make(chan *dbus.Signal, 16), 0
	s.markup, s.actions = slices.Contains(can, "body-markup"), slices.Contains(can, "actions")
	conn.Signal(s.signals)
	return nil
}

func (s *notes) hide(ctx context.Context) {
	if s.conn == nil || s.id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.service().CallWithContext(ctx, notifications+".CloseNotification", dbus.FlagNoAutoStart, s.id)
	s.id = 0
}

// clicked says whether a signal is the person's click on what is shown.
func (s *notes) clicked(sig *dbus.Signal) bool {
	if len(sig.Body) < 2 || sig.Body[0] != s.id || s.id == 0 {
		return false
	}
	switch sig.Name {
	case notifications + ".NotificationClosed":
		s.id = 0
	case notifications + ".ActionInvoked":
		return sig.Body[1] == "default"
	}
	return false
}

// escape makes text into markup that shows that text.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(s)
}

// rawImage is the picture of a notification as the service wants it.
type rawImage struct {
	Width, Height, Stride int32
	Alpha                 bool
	Bits, Channels        int32
	Pixels                []byte
}

func picture() rawImage {
	img, err := png.Decode(bytes.NewReader(assets.Tray("needs-you")))
	if err != nil {
		return rawImage{Bits: 8, Channels: 4, Alpha: true}
	}
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Src)
	return rawImage{int32(out.Rect.Dx()), int32(out.Rect.Dy()), int32(out.Stride), true, 8, 4, out.Pix}
}
