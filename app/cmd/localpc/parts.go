package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"localpc/app/control"
	"localpc/app/desklink"
	versions "localpc/app/kept"
	"localpc/app/login"
	"localpc/app/machine"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/app/store"
	"localpc/app/tray"
	"localpc/capabilities"
	"localpc/capabilities/all"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel"
)

// parts is everything that run puts together, to be closed in reverse.
type parts struct {
	paths   settings.Paths
	machine *machine.Machine
	tray    *tray.Tray
	set     *settings.Store
	desktop *desklink.Host  // nil without a display
	hands   *desklink.Hands // nil without a display
	hub     *embedded
	log     *slog.Logger
	// terminal asks where there is no display; nil before begin.
	terminal atomic.Pointer[control.Terminal]
	tell     func(title, body string) // a notification; nil without a display
	// removal is set once the program is to be taken off this computer.
	removal atomic.Pointer[removal]
	// byWindow: a window asked for that, and waits for the last word.
	byWindow atomic.Bool
	closers  []func()
}

// removal of this program: keep leaves the record. desktop has the window that
// asked for it, nil where none did.
type removal struct {
	keep    bool
	desktop *desklink.Host
}

func (p *parts) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}

func build(ctx context.Context, c *cli, quit func()) (_ *parts, err error) {
	p := &parts{paths: c.paths}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	logFile, err := openLog(c.paths.LogFile())
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { logFile.Close() })
	p.log = slog.New(slog.NewTextHandler(logFile, nil))
	slog.SetDefault(p.log)
	if p.set, err = settings.Load(c.paths); err != nil {
		return nil, err
	}
	if err := c.run.apply(p.set); err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, c.paths.Data)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { st.Close() })
	keychain, err := openSecrets(ctx, c, p.set)
	if err != nil {
		return nil, err
	}
	key, kept, kerr := login.RecordKey(ctx, keychain)
	if key == nil {
		return nil, kerr
	}
	rec, err := record.Open(ctx, record.Options{Rows: st, Key: key, Kept: kept})
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	network, err := tunnel.NewNetwork(p.set.Get().CAFile)
	if err != nil {
		p.log.Warn("The settings of this computer's network can't be used", "err", err)
		network = &tunnel.Network{} // the link to a hub says what to mend
	}
	old, err := versions.Open(ctx, versions.Options{Dir: c.paths.Versions(), Store: st, Limit: func() int64 { return p.set.Get().KeepBytes() },
		Changed: func() {
			if p.machine != nil {
				p.machine.Changed()
			}
		}, Log: p.log})
	keepError := err
	if err != nil {
		p.log.Error("Old versions can't be kept", "err", err)
		old = versions.Off()
	}
	p.closers = append(p.closers, old.Close)
	options := all.Options{Keep: old, Spawn: filepath.Join(filepath.Dir(exe), "localpc-spawn"), Journal: filepath.Join(c.paths.Data, "journal"),
		Connect: func(ctx context.Context, c *capabilities.Connect) error { return p.machine.Connect(ctx, c) }, Proxy: network.Through, Log: p.log}
	if hasDisplay() {
		p.hands = handsOf(exe, c.paths.Display(), p.log)
		p.closers = append(p.closers, func() { p.hands.Close() })
		options.Hands = p.hands
	}
	executors, sh, err := all.New(options)
	if err != nil {
		return nil, err
	}
	p.hub = &embedded{paths: c.paths, set: p.set, log: p.log}
	p.closers = append(p.closers, p.hub.Stop)
	o := machine.Options{Paths: c.paths, Settings: p.set, Store: st, Record: rec, Keychain: keychain, Executors: executors, Kept: old,
		Policy: c.run.policyOf(), Hub: p.hub, Folder: c.run.folder, ContainProblem: sh.Probe(ctx), Version: version, Log: p.log}
	if p.hands != nil {
		o.Display = displayOf(p.hands, p.log)
		o.Hands = p.hands
	}
	if kept {
		o.RecordKey = key.Public().(ed25519.PublicKey)
	} else {
		p.log.Warn("The keychain can't be used", "err", kerr)
		o.Unkept = kerr
	}
	if c.run.policy == "full" {
		o.Standing = append(o.Standing, "Everything is allowed without asking, with full access (--policy full).")
	}
	if keepError != nil {
		o.Warnings = append(o.Warnings, "Old versions of files can't be kept, so what programs change can't be undone; the log says why.")
	}
	if o.ContainProblem != "" {
		o.Warnings = append(o.Warnings, o.ContainProblem)
	}
	start, err := c.autostart()
	if err != nil {
		return nil, err
	}
	o.Autostart, o.SelfTest, o.Clients = start, p.selfTest, clientsOf(start)
	o.Hooks = p.hooks(exe, quit)
	if p.machine, err = machine.New(o); err != nil {
		return nil, err
	}
	server, err := control.Listen(c.paths.Socket(), control.Handler{Snapshot: p.machine.Snapshot, Intend: p.machine.Intend,
		Head: p.machine.Asks().Head, Join: p.machine.Asks().Join, Answer: p.machine.Asks().Answer, Program: p.machine.ProgramKey}, p.log)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, server.Close)
	return p, nil
}

// handsOf is a link to the process that touches the display; exe is this program,
// kept where that keeps what the system gives it.
func handsOf(exe, kept string, log *slog.Logger) *desklink.Hands {
	return desklink.NewHands(desklink.HandsOptions{Log: log,
		Command: func() *exec.Cmd {
			return exec.Command(filepath.Join(filepath.Dir(exe), "localpc-desktop"), "hands", kept)
		}})
}

// hooks joins the machine to the tray, the notifications and the desktop.
func (p *parts) hooks(exe string, quit func()) machine.Hooks {
	h := machine.Hooks{Quit: quit, Remove: func(keep bool) {
		r := &removal{keep: keep}
		if p.byWindow.Load() {
			r.desktop = p.desktop
		}
		p.removal.Store(r)
		quit()
	}}
	p.tray = tray.New(tray.Options{Log: p.log, Intent: p.wish, Host: func(present bool) {
		if !present && p.desktop != nil {
			p.show(snapshot.WindowMain)
		}
	}})
	h.Publish = func(s snapshot.Snapshot) {
		p.tray.Update(s)
		if t := p.terminal.Load(); t != nil {
			t.SignIn(s.Connect.SignIn)
		}
	}
	if !hasDisplay() {
		return h
	}
	p.desktop = desklink.NewHost(desklink.HostOptions{Log: p.log,
		Command:  func() *exec.Cmd { return exec.Command(filepath.Join(filepath.Dir(exe), "localpc-desktop")) },
		OnShown:  func(id string) { p.machine.Asks().Shown(id) },
		OnAnswer: p.answer,
		OnIntent: func(ctx context.Context, in snapshot.Intent) (snapshot.Reply, error) {
			if in.Kind == snapshot.Remove {
				p.byWindow.Store(true)
			}
			return p.machine.Intend(ctx, in)
		},
		OnLost:    func() { p.machine.Asks().Lost(p.desktop) },
		OnStarted: func() { p.machine.Changed() },
	})
	p.closers = append(p.closers, func() {
		if r := p.removal.Load(); r != nil && r.desktop != nil {
			r.desktop.Retire() // its window waits for the last word
			return
		}
		p.desktop.Close()
	})
	note := tray.NewNotifier(tray.NotifierOptions{Show: p.desktop.Raise, Log: p.log})
	p.closers = append(p.closers, note.Close)
	p.tell = note.Show
	h.Publish = func(s snapshot.Snapshot) { p.tray.Update(s); p.desktop.Publish(s) }
	h.ShowWindow, h.RaiseCard = p.show, p.desktop.Raise
	h.Own = func() []int {
		if pid := p.desktop.PID(); pid != 0 {
			return []int{pid}
		}
		return nil
	}
	h.Open = p.desktop.Open
	h.Notify = func(title, body string) {
		if title == "" {
			note.Hide()
			return
		}
		note.Show(title, body)
	}
	return h
}

func (p *parts) answer(id string, a consent.Answer) {
	if err := p.machine.Asks().Answer(id, a); err != nil {
		p.log.Info("An answer came too late", "err", err)
	}
}

func (p *parts) show(window string) {
	if err := p.desktop.Show(window); err != nil {
		p.log.Error("A window could not be shown", "err", err)
	}
}

// wish does what the person chose in the tray's menu.
func (p *parts) wish(in snapshot.Intent) {
	if _, err := p.machine.Intend(context.Background(), in); err != nil {
		p.log.Error("A wish from the tray failed", "intent", in.Kind, "err", err)
		if p.tell != nil {
			p.tell("That did not work", err.Error())
		}
	}
}

// begin makes the places where questions are asked.
func (p *parts) begin(c *cli) {
	switch {
	case p.desktop != nil:
		p.machine.Asks().Add(p.desktop)
		if p.set.Get().Hub == "" && !c.run.background {
			p.show(snapshot.WindowPair)
		}
	case term.IsTerminal(int(os.Stdin.Fd())):
		t := control.NewTerminal(c.out, p.machine.Asks().Shown, p.machine.Asks().Answer)
		p.closers = append(p.closers, t.Close)
		p.machine.Asks().Add(t)
		p.terminal.Store(t)
		go t.Read(os.Stdin) // ends with the process: a read of a terminal can't be ended
	}
}

func (p *parts) greeting(c *cli) string {
	pair := os.Args[0] + " pair this"
	if usual, err := settings.DefaultData(); err != nil || usual != c.paths.Data {
		pair += " --data '" + c.paths.Data + "'"
	}
	return greeting(pair, p.desktop != nil, term.IsTerminal(int(os.Stdin.Fd())), p.set.Get().Hub != "")
}

// greeting is what the terminal says at the start. pair is the command that
// pairs this program, as it can be typed there.
func greeting(pair string, display, terminal, paired bool) string {
	words := "Local PC Executor is running with neither display nor terminal: whatever would have to be asked is refused."
	switch {
	case display:
		return "Local PC Executor is running. Its icon is in the panel; where the desktop shows none, a small window takes its place. Ctrl+C ends it."
	case terminal:
		words = "Local PC Executor is running without a display. Questions are asked here. Ctrl+C ends it."
	}
	if !paired {
		words += "\nPair it from another terminal: " + pair
	}
	return words
}

// hasDisplay tells whether windows can be shown at all.
func hasDisplay() bool {
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" || !unixDesktop
}

// maxLog is when the log begins anew; the one before is kept beside it.
const maxLog = 5 << 20

func openLog(path string) (*os.File, error) {
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("put the old log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	fmt.Fprintf(f, "-- %s start %s\n", time.Now().UTC().Format(time.RFC3339), version)
	return f, nil
}
