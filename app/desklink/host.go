package desklink

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// quitWithin is how long a process may take to end, once it was told to quit or
// has closed its side of the link. Then it is killed.
const quitWithin = 3 * time.Second

// armMS is how long a card's allowing controls stay unarmed.
const armMS = 700

// HostOptions build a Host. Command, OnShown, OnAnswer, OnIntent and OnLost are
// needed. The callbacks come from the Host's goroutines, with nothing locked.
type HostOptions struct {
	// Command makes the command that starts localpc-desktop. Its standard
	// input, output and error are the Host's.
	Command  func() *exec.Cmd
	OnShown  func(card string)
	OnAnswer func(card string, a consent.Answer)
	OnIntent func(context.Context, snapshot.Intent) (snapshot.Reply, error)
	// OnLost says that the process ended by itself.
	OnLost func()
	// OnStarted says that PID is another one now; nil: nobody wants to know.
	OnStarted func()
	// Idle is how long it stays without card or window; 0 means 3 minutes.
	Idle time.Duration
	// Stuck is how long a card that is withdrawn may not have been drawn, by a
	// process that has had three times as long to start: then it is killed, and
	// the next card comes from a fresh one. 0 means 9 seconds.
	Stuck time.Duration
	Log   *slog.Logger
}

// Host is localpc's side of the link. It starts localpc-desktop when a card or
// a window is to be shown, and lets it go when it has been idle. Safe for
// concurrent use.
type Host struct {
	o      HostOptions
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	p      *process          // guarded by mu; nil: none runs
	last   snapshot.Snapshot // guarded by mu
	known  bool              // last is set; guarded by mu
	closed bool              // guarded by mu
	began  time.Time         // the last start; guarded by mu
	again  *time.Timer       // starts it again for the strip; guarded by mu
	// retired: what asked is gone, and only the last word is still to be shown;
	// guarded by mu.
	retired bool
}

// process is one running localpc-desktop. Its fields are guarded by Host.mu.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	queue   []Down
	wake    chan struct{}
	begun   time.Time
	card    string    // the open one's request
	digits  string    // of the open one
	given   time.Time // when it was
	drawn   bool
	windows int
	idle    *time.Timer
	ending  *time.Timer // kills it; nil while it may stay
	said    []byte      // the end of what it printed
	leaving bool        // told to quit: its end is no loss
	done    chan struct{}
	shut    chan struct{} // closed with its last window; nil: nobody waits
}

// NewHost makes a Host; nothing is started yet.
func NewHost(o HostOptions) *Host {
	if o.Idle == 0 {
		o.Idle = 3 * time.Minute
	}
	if o.Stuck == 0 {
		o.Stuck = 9 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	h := &Host{o: o}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

var errClosed = errors.New("the desktop link is closed")

// Present shows a card. The error says that localpc-desktop can't be started;
// that it can't draw is told by OnLost, that it has drawn by OnShown.
func (h *Host) Present(r consent.Request, info snapshot.CardInfo) (shown bool, err error) {
	c := cardOf(r, info)
	c.Digits = consent.Digits()
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.need()
	if err != nil {
		return false, err
	}
	p.card, p.digits, p.given, p.drawn = r.ID, c.Digits, time.Now(), false
	p.push(Down{Card: c})
	h.rest(p)
	return false, nil
}

// Update tells of fewer folded requests on the open card.
func (h *Host) Update(r consent.Request, info snapshot.CardInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.p; p != nil && p.card == r.ID {
		c := cardOf(r, info)
		c.Digits, c.Update = p.digits, true
		p.push(Down{Card: c})
	}
}

func cardOf(r consent.Request, info snapshot.CardInfo) *Card {
	return &Card{Request: r, Waiting: info.Waiting, ArmMS: armMS, Folders: info.Folders, FolderOnly: info.FolderOnly,
		ContainProblem: info.ContainProblem, Folded: info.Folded, Denied: info.Denied}
}

// Withdraw takes a card off the screen.
func (h *Host) Withdraw(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.p; p != nil {
		p.push(Down{Close: &CloseCard{ID: id}})
		if p.card == id {
			p.card = ""
			if !p.drawn && time.Since(p.given) >= h.o.Stuck && time.Since(p.begun) >= 3*h.o.Stuck {
				h.o.Log.Error("The desktop part draws nothing any more")
				_ = p.cmd.Process.Kill() // read tells of the loss
			}
		}
		h.rest(p)
	}
}

// Raise brings the open card to the front.
func (h *Host) Raise() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.p != nil && h.p.card != "" {
		h.p.push(Down{Raise: &RaiseCard{}})
	}
}

// Show opens a window, or raises it.
func (h *Host) Show(window string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.need()
	if err != nil {
		return err
	}
	h.pushLast(p)
	p.push(Down{Show: &Show{Window: window}})
	h.rest(p)
	return nil
}

// Publish hands a snapshot to what is open: the windows, the card, which says
// how many wait behind it, and the strip, which is there as long as a program
// has control.
func (h *Host) Publish(s snapshot.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.controlled()
	h.last, h.known = s, true
	if h.retired {
		return
	}
	if h.controlled() && (h.p == nil || h.p.leaving) {
		h.strip()
		return
	}
	if p := h.p; p != nil {
		if p.windows > 0 || p.card != "" || had || h.controlled() {
			p.push(Down{Snapshot: &s})
		}
		if had != h.controlled() {
			h.rest(p)
		}
	}
}

// Look hands over a picture for a card, while that is open.
func (h *Host) Look(l consent.Look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.p; p != nil && p.card == l.Request {
		p.push(Down{Look: &l})
	}
}

// Open is how many windows are open, without the strip.
func (h *Host) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.p == nil {
		return 0
	}
	n := h.p.windows
	if h.controlled() {
		n--
	}
	return max(0, n)
}

// controlled tells whether the strip has to be shown. Called with mu held.
func (h *Host) controlled() bool { return h.known && h.last.Control != nil }

// stripAgain is the least time between two starts for the strip: a process that
// can't live must not be started without end.
const stripAgain = 3 * time.Second

// strip starts the process for the strip, at once or when that may be again.
// Called with mu held.
func (h *Host) strip() {
	if h.closed || h.retired || !h.controlled() {
		return
	}
	if wait := stripAgain - time.Since(h.began); wait > 0 {
		if h.again == nil {
			h.again = time.AfterFunc(wait, func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.again = nil; h.p == nil {
					h.strip()
				}
			})
		}
		return
	}
	p, err := h.need()
	if err != nil {
		h.o.Log.Error("The strip could not be shown", "err", err)
		return
	}
	h.rest(p)
}

// PID is the running process's, 0 when there is none.
func (h *Host) PID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.p == nil {
		return 0
	}
	return h.p.cmd.Process.Pid
}

// Retire keeps the process that shows windows for a last word, and nothing
// else: no other is started, and what it asks for is refused.
func (h *Host) Retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired = true
	if p := h.p; p != nil && p.card != "" {
		p.push(Down{Close: &CloseCard{ID: p.card}})
		p.card = ""
		h.rest(p)
	}
}

// LastWord shows how the removal went, to a window that waits for it, and
// returns when every window has been closed, or after most. It returns false at
// once where no window is open.
func (h *Host) LastWord(r Removed, most time.Duration) (read bool) {
	h.mu.Lock()
	p := h.p
	if p == nil || p.leaving || p.windows == 0 {
		h.mu.Unlock()
		return false
	}
	p.push(Down{Removed: &r})
	shut := make(chan struct{})
	p.shut = shut
	h.mu.Unlock()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-shut:
	case <-p.done:
	case <-late.C:
	}
	return true
}

// Close ends localpc-desktop and waits for it and for every callback.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	if h.again != nil {
		h.again.Stop()
	}
	if h.p != nil {
		h.leave(h.p)
	}
	h.mu.Unlock()
	h.cancel()
	h.wg.Wait()
}

// need returns the running process, or starts it. Called with mu held.
func (h *Host) need() (*process, error) {
	if h.closed || h.retired {
		return nil, errClosed
	}
	if h.p != nil && !h.p.leaving {
		return h.p, nil
	}
	cmd := h.o.Command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start localpc-desktop: %w", err)
	}
	p := &process{cmd: cmd, in: in, begun: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	h.p, h.began = p, p.begun
	if h.controlled() {
		h.pushLast(p)
	}
	h.wg.Add(3)
	go h.write(p)
	go h.relay(p, errs)
	go h.read(p, out)
	if h.o.OnStarted != nil {
		h.wg.Go(h.o.OnStarted)
	}
	return p, nil
}

// rest starts the idle clock when nothing is shown, and stops it otherwise.
// Called with mu held.
func (h *Host) rest(p *process) {
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	if p.card != "" || p.windows > 0 || h.controlled() {
		return
	}
	p.idle = time.AfterFunc(h.o.Idle, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.p == p && p.card == "" && p.windows == 0 && !h.controlled() {
			h.leave(p)
		}
	})
}

// leave asks a process to quit. Called with mu held.
func (h *Host) leave(p *process) {
	if !p.leaving {
		p.leaving = true
		p.push(Down{Quit: true})
		h.endSoon(p)
	}
}

// endSoon kills a process that does not end by itself. Called with mu held.
func (h *Host) endSoon(p *process) {
	if p.ending == nil {
		p.ending = time.AfterFunc(quitWithin, func() { _ = p.cmd.Process.Kill() })
	}
}

// pushLast queues the newest snapshot. Called with mu held.
func (h *Host) pushLast(p *process) {
	if h.known {
		s := h.last
		p.push(Down{Snapshot: &s})
	}
}

// push queues a message; a snapshot that was not sent yet is replaced. Called
// with mu held.
func (p *process) push(d Down) {
	if d.Snapshot != nil {
		for i := range p.queue {
			if p.queue[i].Snapshot != nil {
				p.queue[i] = d
				return
			}
		}
	}
	p.queue = append(p.queue, d)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued until the process has gone.
func (h *Host) write(p *process) {
	defer h.wg.Done()
	defer p.in.Close()
	for {
		h.mu.Lock()
		var d Down
		some := len(p.queue) > 0
		if some {
			d = p.queue[0]
			p.queue = p.queue[1:]
		}
		h.mu.Unlock()
		if !some {
			select {
			case <-p.wake:
				continue
			case <-p.done:
				return
			}
		}
		b, err := json.Marshal(d)
		if err == nil && len(b) >= MaxLine {
			err = fmt.Errorf("a message of %d bytes", len(b))
		}
		if err != nil {
			h.o.Log.Error("A message to the desktop could not be sent", "err", err)
			continue
		}
		if _, err := p.in.Write(append(b, '\n')); err != nil {
			_ = p.cmd.Process.Kill() // it can't be told anything; read notices its end
			return
		}
		if d.Quit {
			return
		}
	}
}

// lastWords is how much of what a process printed is kept for its end.
const lastWords = 16 << 10

// relay keeps the end of what localpc-desktop prints: the toolkit's own
// complaints, which nobody needs unless it crashes.
func (h *Host) relay(p *process, r io.Reader) {
	defer h.wg.Done()
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		h.mu.Lock()
		p.said = append(p.said, buf[:n]...)
		if over := len(p.said) - lastWords; over > 0 {
			p.said = p.said[over:]
		}
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// read takes messages until the process has ended.
func (h *Host) read(p *process, out io.Reader) {
	defer h.wg.Done()
	sc := bufio.NewScanner(out)
	sc.Buffer(make([]byte, 64<<10), MaxLine)
	for sc.Scan() {
		var u Up
		if err := json.Unmarshal(sc.Bytes(), &u); err != nil {
			h.o.Log.Warn("A message of the desktop was not readable", "err", err)
			continue
		}
		h.take(p, u)
	}
	if sc.Err() != nil {
		_ = p.cmd.Process.Kill()
	}
	h.mu.Lock()
	h.endSoon(p) // one that closes its side and stays shows nothing any more
	h.mu.Unlock()
	err := p.cmd.Wait()
	close(p.done)
	h.mu.Lock()
	lost, said := !p.leaving && !h.retired, string(p.said)
	p.ending.Stop()
	if p.idle != nil {
		p.idle.Stop()
	}
	if h.p == p {
		h.p = nil
		h.strip()
	}
	h.mu.Unlock()
	if lost {
		h.o.Log.Warn("The desktop part ended by itself", "err", err, "said", said)
		h.o.OnLost()
	}
}

func (h *Host) take(p *process, u Up) {
	h.mu.Lock()
	retired := h.retired
	h.mu.Unlock()
	switch {
	case retired && u.Windows == nil:
		if u.Intent != nil {
			h.mu.Lock()
			p.push(Down{Told: &Told{Intent: u.Intent.Kind, Text: "This program is being removed."}})
			h.mu.Unlock()
		}
	case u.Shown != nil:
		h.mu.Lock()
		p.drawn = p.drawn || u.Shown.ID == p.card
		h.mu.Unlock()
		h.o.OnShown(u.Shown.ID)
	case u.Answer != nil:
		h.o.OnAnswer(u.Answer.ID, u.Answer.Answer)
	case u.Windows != nil:
		h.mu.Lock()
		p.windows = max(0, *u.Windows)
		if p.windows > 0 {
			h.pushLast(p)
		} else if p.shut != nil {
			close(p.shut)
			p.shut = nil
		}
		h.rest(p)
		h.mu.Unlock()
	case u.Intent != nil:
		h.wg.Add(1)
		go h.intend(p, *u.Intent)
	}
}

// intend does what a window asked for, and tells it how it went.
func (h *Host) intend(p *process, in snapshot.Intent) {
	defer h.wg.Done()
	reply, err := h.o.OnIntent(h.ctx, in)
	d := Down{Told: &Told{Intent: in.Kind, OK: err == nil, Text: reply.Text, Question: reply.Question}}
	switch {
	case err != nil:
		d.Told.Text = err.Error()
	case reply.Detail != nil:
		d = Down{Detail: reply.Detail}
	case reply.Entries != nil:
		d = Down{Found: &Found{Text: in.Text, Filter: in.Filter, Entries: reply.Entries}}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.p == p {
		p.push(d)
	}
}
