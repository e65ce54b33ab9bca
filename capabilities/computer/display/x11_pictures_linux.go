package display

import (
	"context"
	"errors"
	"image"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/dpms"
	"github.com/jezek/xgb/randr"
	"github.com/jezek/xgb/screensaver"
	"github.com/jezek/xgb/shm"
	"github.com/jezek/xgb/xfixes"
	"github.com/jezek/xgb/xproto"
	"github.com/kbinani/screenshot"
	"golang.org/x/sys/unix"

	"localpc/capabilities/computer/space"
)

// x11Pictures takes pictures of the root window, into memory that it shares
// with the X server.
type x11Pictures struct {
	*xconn
	name        string
	gdkScale    string
	randr       bool // 1.5, which has monitors
	fixes       bool
	dpms, saver bool
	mask        [3]uint32 // red, green, blue
	bytes       int       // of a pixel

	// Under the connection's token.
	hasShm bool    // the server has MIT-SHM
	shared bool    // and can write into our memory
	seg    shm.Seg // 0: none
	memory []byte
	whole  image.Rectangle // the root window at the last look

	watch    *xconn        // hears of changes
	watching chan struct{} // closed when nobody does any more
}

func newX11Pictures(name string) (*x11Pictures, error) {
	c, err := dialX11(name)
	if err != nil {
		return nil, err
	}
	p := &x11Pictures{xconn: c, name: name, gdkScale: os.Getenv("GDK_SCALE")}
	_, p.randr = c.extension("RANDR")
	if p.randr {
		v, err := randr.QueryVersion(c.Conn, 1, 5).Reply()
		p.randr = err == nil && (v.MajorVersion > 1 || v.MinorVersion >= 5)
	}
	if _, p.fixes = c.extension("XFIXES"); p.fixes {
		_, err := xfixes.QueryVersion(c.Conn, 5, 0).Reply()
		p.fixes = err == nil
	}
	if _, p.hasShm = c.extension("MIT-SHM"); p.hasShm {
		_, err := shm.QueryVersion(c.Conn).Reply()
		p.shared = err == nil
	}
	_, p.dpms = c.extension("DPMS")
	_, p.saver = c.extension("MIT-SCREEN-SAVER")
	if err := p.visual(); err != nil {
		c.close()
		return nil, err
	}
	return p, nil
}

// visual finds out how the pixels of the root window are made.
func (p *x11Pictures) visual() error {
	setup := xproto.Setup(p.Conn)
	for _, f := range setup.PixmapFormats {
		if f.Depth == p.screen.RootDepth {
			p.bytes = int(f.BitsPerPixel) / 8
		}
	}
	for _, d := range p.screen.AllowedDepths {
		for _, v := range d.Visuals {
			if v.VisualId == p.screen.RootVisual {
				p.mask = [3]uint32{v.RedMask, v.GreenMask, v.BlueMask}
			}
		}
	}
	if setup.ImageByteOrder != xproto.ImageOrderLSBFirst || p.bytes != 4 && p.bytes != 2 || p.mask[0] == 0 {
		return errors.New("its colours are of a kind that is no longer in use")
	}
	return nil
}

func (p *x11Pictures) layout(ctx context.Context) (space.Layout, error) {
	return ask(ctx, p.xconn, p.screens)
}

func (p *x11Pictures) screens() (space.Layout, error) {
	g, err := xproto.GetGeometry(p.Conn, xproto.Drawable(p.root)).Reply()
	if err != nil {
		return space.Layout{}, err
	}
	p.whole = image.Rect(0, 0, int(g.Width), int(g.Height))
	scale := p.scale()
	var l space.Layout
	add := func(name string, r image.Rectangle, turned int, primary bool) {
		if r = r.Intersect(p.whole); r.Empty() {
			return
		}
		l.Screens = append(l.Screens, space.Screen{Index: len(l.Screens), Name: name, Device: r, Points: inPoints(r, scale), Scale: scale, Turned: turned, Primary: primary})
	}
	if p.randr {
		m, err := randr.GetMonitors(p.Conn, p.root, true).Reply()
		if err != nil {
			return space.Layout{}, err
		}
		for _, s := range m.Monitors {
			at := image.Pt(int(s.X), int(s.Y))
			add(p.atomName(s.Name), image.Rectangle{Max: image.Pt(int(s.Width), int(s.Height))}.Add(at), p.turned(s.Outputs), s.Primary)
		}
	}
	if len(l.Screens) == 0 {
		add("screen", p.whole, 0, true)
	}
	return l, nil
}

func inPoints(r image.Rectangle, scale float64) image.Rectangle {
	if scale == 1 {
		return r
	}
	f := func(n int) int { return int(float64(n)/scale + 0.5) }
	at := image.Pt(f(r.Min.X), f(r.Min.Y))
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(f(r.Dx()), f(r.Dy())))}
}

// turned is how a monitor stands, in degrees clockwise; RandR counts the other
// way round.
func (p *x11Pictures) turned(outputs []randr.Output) int {
	if len(outputs) == 0 {
		return 0
	}
	o, err := randr.GetOutputInfo(p.Conn, outputs[0], 0).Reply()
	if err != nil || o.Crtc == 0 {
		return 0
	}
	c, err := randr.GetCrtcInfo(p.Conn, o.Crtc, 0).Reply()
	if err != nil {
		return 0
	}
	switch {
	case c.Rotation&randr.RotationRotate90 != 0:
		return 270
	case c.Rotation&randr.RotationRotate180 != 0:
		return 180
	case c.Rotation&randr.RotationRotate270 != 0:
		return 90
	}
	return 0
}

// scale is by how much the desktop enlarges its windows: X11 has one for all
// screens, and it stands in the resources, or in the environment of GTK.
func (p *x11Pictures) scale() float64 {
	_, _, v, err := p.property(p.root, "RESOURCE_MANAGER", 1<<20)
	if err == nil {
		for line := range strings.Lines(string(v)) {
			if dpi, ok := strings.CutPrefix(line, "Xft.dpi:"); ok {
				if n, err := strconv.ParseFloat(strings.TrimSpace(dpi), 64); err == nil && n >= 48 && n <= 960 && n != 96 {
					return n / 96
				}
			}
		}
	}
	if n, err := strconv.Atoi(p.gdkScale); err == nil && n >= 2 && n <= 8 {
		return float64(n)
	}
	return 1
}

func (c *xconn) atomName(a xproto.Atom) string {
	if n, ok := c.names[a]; ok {
		return n
	}
	r, err := xproto.GetAtomName(c.Conn, a).Reply()
	if err != nil {
		return ""
	}
	c.names[a] = r.Name
	return r.Name
}

func (p *x11Pictures) grab(ctx context.Context, area image.Rectangle, pointer bool) (*raster, error) {
	return ask(ctx, p.xconn, func() (*raster, error) {
		r, err := p.take(area.Intersect(p.whole))
		if err == nil && pointer && p.fixes {
			r.pointer, err = p.sprite()
		}
		return r, err
	})
}

// take is the fast way where the server shares memory, else the others.
func (p *x11Pictures) take(area image.Rectangle) (*raster, error) {
	if area.Empty() {
		return &raster{rect: area}, nil
	}
	if p.shared {
		data, err := p.fromShared(area)
		if err == nil {
			return p.raster(data, area, true)
		}
		var refused xproto.MatchError // the root window has become smaller
		if errors.As(err, &refused) {
			return nil, err
		}
		p.shared = false // another computer's screen: it can't reach our memory
	} else if !p.hasShm { // where there is, the library writes xgb's tables while others read them
		if r, err := p.fromLibrary(area); err == nil {
			return r, nil
		}
	}
	img, err := xproto.GetImage(p.Conn, xproto.ImageFormatZPixmap, xproto.Drawable(p.root), int16(area.Min.X), int16(area.Min.Y), uint16(area.Dx()), uint16(area.Dy()), ^uint32(0)).Reply()
	if err != nil {
		return nil, err
	}
	return p.raster(img.Data, area, false)
}

// fromShared has the server write area into the memory that it shares with us,
// which is made once, large enough for all screens.
func (p *x11Pictures) fromShared(area image.Rectangle) ([]byte, error) {
	if need := p.whole.Dx() * p.whole.Dy() * 4; len(p.memory) < need {
		p.unshare()
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, need, unix.IPC_CREAT|0o600)
		if err != nil {
			return nil, err
		}
		// It goes when the last one lets go of it, however this process ends.
		defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		if p.memory, err = unix.SysvShmAttach(id, 0, 0); err != nil {
			return nil, err
		}
		if p.seg, err = shm.NewSegId(p.Conn); err == nil {
			err = shm.AttachChecked(p.Conn, p.seg, uint32(id), false).Check()
		}
		if err != nil {
			p.seg = 0
			p.unshare()
			return nil, err
		}
	}
	r, err := shm.GetImage(p.Conn, xproto.Drawable(p.root), int16(area.Min.X), int16(area.Min.Y), uint16(area.Dx()), uint16(area.Dy()), ^uint32(0), xproto.ImageFormatZPixmap, p.seg, 0).Reply()
	if err != nil {
		return nil, err
	}
	return p.memory[:r.Size], nil
}

func (p *x11Pictures) unshare() {
	if p.seg != 0 {
		shm.Detach(p.Conn, p.seg)
		p.seg = 0
	}
	if p.memory != nil {
		unix.SysvShmDetach(p.memory)
		p.memory = nil
	}
}

// fromLibrary is the way of github.com/kbinani/screenshot, slower: it goes to
// the display of the environment, over a connection of its own.
func (p *x11Pictures) fromLibrary(area image.Rectangle) (*raster, error) {
	if os.Getenv("DISPLAY") != p.name || os.Getenv("XDG_SESSION_TYPE") == "wayland" || p.bytes != 4 || !p.plain() {
		return nil, errors.New("not the display of the environment")
	}
	l, err := p.screens()
	if err != nil {
		return nil, err
	}
	first := l.Screens[0].Device.Min // it counts from there
	img, err := screenshot.Capture(area.Min.X-first.X, area.Min.Y-first.Y, area.Dx(), area.Dy())
	if err != nil {
		return nil, err
	}
	return fromRGBA(img, area.Min), nil
}

// plain: the pixels are blue, green, red and one byte more.
func (p *x11Pictures) plain() bool {
	return p.bytes == 4 && p.mask == [3]uint32{0xff0000, 0xff00, 0xff}
}

// raster is pixels as the server gave them; shared ones may be changed in place.
func (p *x11Pictures) raster(data []byte, area image.Rectangle, shared bool) (*raster, error) {
	stride := (area.Dx()*p.bytes + 3) &^ 3 // lines are padded to 32 bits
	if len(data) < stride*area.Dy() {
		return nil, errors.New("the X server sent less than a picture")
	}
	if p.plain() {
		return &raster{pix: data, stride: stride, rect: area}, nil
	}
	out := &raster{pix: make([]byte, 4*area.Dx()*area.Dy()), stride: 4 * area.Dx(), rect: area}
	for y := range area.Dy() {
		for x := range area.Dx() {
			from := data[y*stride+x*p.bytes:]
			v := uint32(from[0]) | uint32(from[1])<<8
			if p.bytes == 4 {
				v |= uint32(from[2])<<16 | uint32(from[3])<<24
			}
			to := out.pix[y*out.stride+4*x:]
			to[2], to[1], to[0] = channel(v, p.mask[0]), channel(v, p.mask[1]), channel(v, p.mask[2])
		}
	}
	return out, nil
}

// channel is the bits of v under mask as a byte.
func channel(v, mask uint32) byte {
	top := mask >> bits.TrailingZeros32(mask)
	return byte(uint64(v&mask) >> bits.TrailingZeros32(mask) * 255 / uint64(top))
}

func (p *x11Pictures) sprite() (*sprite, error) {
	c, err := xfixes.GetCursorImage(p.Conn).Reply()
	if err != nil {
		return nil, err
	}
	img := image.NewRGBA(image.Rect(0, 0, int(c.Width), int(c.Height)))
	for i, v := range c.CursorImage {
		if 4*i+3 >= len(img.Pix) {
			break
		}
		img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], img.Pix[4*i+3] = byte(v>>16), byte(v>>8), byte(v), byte(v>>24)
	}
	return &sprite{img: img, at: image.Pt(int(c.X)-int(c.Xhot), int(c.Y)-int(c.Yhot))}, nil
}

func (p *x11Pictures) blank(ctx context.Context) string {
	why, err := ask(ctx, p.xconn, func() (string, error) {
		if p.dpms {
			if r, err := dpms.Info(p.Conn).Reply(); err == nil && r.State && r.PowerLevel != dpms.DPMSModeOn {
				return "The screen is switched off to save power, so there is nothing to see. Move the mouse of this computer to wake it.", nil
			}
		}
		if p.saver {
			if r, err := screensaver.QueryInfo(p.Conn, xproto.Drawable(p.root)).Reply(); err == nil && r.State == screensaver.StateOn {
				return "The screen saver is on, so the screen is black. Move the mouse of this computer, and unlock it where it asks for the password.", nil
			}
		}
		return "", nil
	})
	if err != nil {
		return ""
	}
	return why
}

// changed listens on a connection of its own.
func (p *x11Pictures) changed(fn func()) {
	c, err := dialX11(p.name)
	if err != nil {
		return
	}
	c.heard = true
	p.watch = c
	xproto.ChangeWindowAttributes(c.Conn, c.root, xproto.CwEventMask, []uint32{xproto.EventMaskStructureNotify | xproto.EventMaskPropertyChange})
	first, ok := c.extension("RANDR")
	if ok {
		randr.QueryVersion(c.Conn, 1, 5).Reply()
		randr.SelectInput(c.Conn, c.root, randr.NotifyMaskScreenChange|randr.NotifyMaskCrtcChange|randr.NotifyMaskOutputChange)
	}
	resources := c.atom("RESOURCE_MANAGER")
	tell := make(chan struct{}, 1)
	go c.each(func(e xgb.Event) {
		switch e := e.(type) {
		case rawEvent:
			if !ok || e[0]&127 != first && e[0]&127 != first+1 {
				return
			}
		case xproto.ConfigureNotifyEvent:
		case xproto.PropertyNotifyEvent:
			if e.Atom != resources {
				return
			}
		default:
			return
		}
		select {
		case tell <- struct{}{}:
		default:
		}
	})
	p.watching = make(chan struct{})
	go func() {
		defer close(p.watching)
		fn() // learns what they are now
		for {
			select {
			case <-tell:
				fn()
			case <-c.gone:
				return
			}
		}
	}()
}

func (p *x11Pictures) close() {
	if p.watch != nil {
		p.watch.close()
		<-p.watching
	}
	p.xconn.close()
	p.token <- struct{}{} // nobody reads the memory any more
	p.seg = 0
	p.unshare()
	<-p.token
}
