package tray

import (
	"context"
	"errors"
	"time"

	"github.com/godbus/dbus/v5"
)

// busLimit is how long the session bus may take for an answer.
const busLimit = 2 * time.Second

// The watcher knows the hosts: panels that show icons.
const (
	watcher     = "org.kde.StatusNotifierWatcher"
	watcherPath = "/StatusNotifierWatcher"
)

// connectBus connects to the person's session bus, where there is one. It
// never starts one, and gives up after busLimit.
func connectBus(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.SessionBusPrivateNoAutoStartup(dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(busLimit, func() { conn.Close() })
	if err = conn.Auth(nil); err == nil {
		err = conn.Hello()
	}
	if !late.Stop() && err == nil {
		err = errors.New("the session bus does not answer")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// HostPresent says whether anything shows tray icons now. It takes at most a
// few seconds.
func HostPresent(ctx context.Context) bool {
	conn, err := connectBus(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	return hosted(ctx, conn)
}

// hosted asks the watcher, without having the bus start one.
func hosted(ctx context.Context, conn *dbus.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, busLimit)
	defer cancel()
	var v dbus.Variant
	err := conn.Object(watcher, watcherPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get",
		dbus.FlagNoAutoStart, watcher, "IsStatusNotifierHostRegistered").Store(&v)
	if err != nil {
		return false
	}
	present, _ := v.Value().(bool)
	return present
}

// watchHost tells Host until ctx ends or the bus is gone; then there is no
// tray, and it says so.
func (t *Tray) watchHost(ctx context.Context, conn *dbus.Conn) {
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, watcher)},
		{dbus.WithMatchInterface(watcher), dbus.WithMatchMember("StatusNotifierHostRegistered")},
		{dbus.WithMatchInterface(watcher), dbus.WithMatchMember("StatusNotifierHostUnregistered")},
	} {
		if err := conn.AddMatchSignalContext(ctx, match...); err != nil {
			t.opts.Log.Warn("The tray host can't be watched", "err", err)
		}
	}
	var told, present, ever bool
	tell := func(now bool) {
		if !ever || told != now {
			ever, told = true, now
			t.opts.Host(now)
		}
	}
	grace := time.NewTimer(0)
	<-grace.C
	for {
		if present = hosted(ctx, conn); present {
			grace.Stop()
			tell(true)
		} else if !ever || told {
			grace.Reset(t.opts.Grace)
		}
		select {
		case <-ctx.Done():
			return
		case <-grace.C:
			tell(false)
		case _, open := <-signals:
			if !open {
				if ctx.Err() == nil {
					t.opts.Log.Warn("The session bus is gone, and the tray icon with it")
					tell(false)
				}
				return
			}
		}
	}
}
