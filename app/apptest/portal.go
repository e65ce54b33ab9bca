//go:build linux

package apptest

import (
	"github.com/godbus/dbus/v5"
)

// portal answers the one question that a toolkit asks a desktop portal about
// its looks: org.freedesktop.appearance color-scheme (1 dark, 2 light). Fyne
// reads its theme there. The rest of the portal does not exist.
type portal struct {
	conn *dbus.Conn
	dark func() bool
}

const (
	portalPath  = "/org/freedesktop/portal/desktop"
	portalIface = "org.freedesktop.portal.Settings"
	appearance  = "org.freedesktop.appearance"
	scheme      = "color-scheme"
)

func (d *Desktop) startPortal() {
	d.t.Helper()
	conn, err := dbus.Connect(d.BusAddress)
	must(d.t, err)
	p := &portal{conn: conn, dark: func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.opts.Dark }}
	d.portal = p
	must(d.t, conn.Export(p, portalPath, portalIface))
	_, err = conn.RequestName("org.freedesktop.portal.Desktop", dbus.NameFlagDoNotQueue)
	must(d.t, err)
}

// SetDark changes the person's theme while programs run. The panel keeps its
// own until it is restarted.
func (d *Desktop) SetDark(dark bool) {
	d.t.Helper()
	d.mu.Lock()
	d.opts.Dark = dark
	d.mu.Unlock()
	must(d.t, d.portal.conn.Emit(portalPath, portalIface+".SettingChanged", appearance, scheme, d.portal.value()))
}

func (p *portal) close() { p.conn.Close() }

func (p *portal) value() dbus.Variant {
	if p.dark() {
		return dbus.MakeVariant(uint32(1))
	}
	return dbus.MakeVariant(uint32(2))
}

// ReadOne answers for one key of one namespace.
func (p *portal) ReadOne(namespace, key string) (dbus.Variant, *dbus.Error) {
	if namespace != appearance || key != scheme {
		return dbus.Variant{}, dbus.NewError("org.freedesktop.portal.Error.NotFound", []any{"no such setting"})
	}
	return p.value(), nil
}

// Read is the older form, with the value wrapped once more.
func (p *portal) Read(namespace, key string) (dbus.Variant, *dbus.Error) {
	v, err := p.ReadOne(namespace, key)
	return dbus.MakeVariant(v), err
}

// ReadAll answers with everything there is.
func (p *portal) ReadAll([]string) (map[string]map[string]dbus.Variant, *dbus.Error) {
	return map[string]map[string]dbus.Variant{appearance: {scheme: p.value()}}, nil
}
