//go:build linux

package shell_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// untilServed is a command that asks a server of its session until it answers.
func untilServed(address string) string {
	return "for i in $(seq 200); do curl -sSf -m 5 " + address + " 2>/dev/null && exit; sleep 0.1; done; exit 1"
}

// What one command serves on localhost, the next ones of its session reach, at a
// terminal or not, and nobody else does. It ends with the session.
func TestAServerIsReachedByLaterCommands(t *testing.T) {
	for name, change := range map[string]func(*shell.Options){
		"without a way out": func(*shell.Options) {},
		"with a way out": func(o *shell.Options) {
			o.Connect = func(context.Context, *capabilities.Connect) error { return wire.Errorf(wire.CodeDenied, "no") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, change)
			ses, other := capabilitytest.NewSession(t, consent.ModeWork), capabilitytest.NewSession(t, consent.ModeWork)
			if err := os.WriteFile(filepath.Join(ses.Folder, "page"), []byte("a page\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			// The command ends, its server stays; as does one that goes on itself.
			r := do(t, s, ses, contained, bash(ses, "python3 -m http.server 3000 --bind localhost >/dev/null 2>&1 & exit 0"))
			if r.exit.ExitCode != 0 || r.exit.Running != 1 {
				t.Fatalf("%+v: %s", r.exit, r.err)
			}
			begin(t.Context(), t, s, ses, contained, bash(ses, "exec python3 -m http.server 3001 >/dev/null 2>&1"))
			// One that is started at a terminal, and one that is reached from there.
			term := feed(t.Context(), t, s, ses, contained, at(ses, 80, 24, "/bin/bash", "-i"))
			term.types("python3 -m http.server 3002 >/dev/null 2>&1 &\n")
			for _, port := range []string{"3000", "3001", "3002"} {
				if got := sh(t, s, ses, contained, untilServed("http://localhost:"+port+"/page")); got != "a page\n" {
					t.Errorf("at port %s: %q", port, got)
				}
			}
			term.types("curl -sS http://localhost:3000/page && echo re''ached\n")
			term.reads("pty", "a page\r\n", "reached\r\n")
			// By the other names that servers print.
			for _, host := range []string{"127.0.0.1", "0.0.0.0", "app.localhost"} {
				if got := sh(t, s, ses, contained, "curl -sS http://"+host+":3001/page"); got != "a page\n" {
					t.Errorf("at %s: %q", host, got)
				}
			}
			// Not from another session, not from this computer, and this computer's
			// servers not from inside.
			for what, choice := range map[string]consent.Choice{"another session": contained, "this computer": full} {
				if r := do(t, s, other, choice, bash(other, "curl -sS -m 2 http://127.0.0.1:3000/page")); r.exit.ExitCode == 0 || strings.Contains(r.out, "a page") {
					t.Errorf("%s reaches it: %q", what, r.out)
				}
			}
			web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "this computer's") }))
			t.Cleanup(web.Close)
			if r := do(t, s, ses, contained, bash(ses, "curl -sS -m 2 "+web.URL)); r.exit.ExitCode == 0 || r.out != "" {
				t.Errorf("this computer's server is reached from inside: %q", r.out)
			}
			if err := s.EndSession(t.Context(), ses.ID); err != nil {
				t.Fatal(err)
			}
			if r := do(t, s, ses, contained, bash(ses, "curl -sS -m 2 http://localhost:3000/page")); r.exit.ExitCode == 0 {
				t.Errorf("a server outlived its session: %q", r.out)
			}
		})
	}
}

// asking waits for n connections that were asked for, and returns them by what
// they were for.
func (w *world) asking(t *testing.T, n int) map[string][]capabilities.Connect {
	t.Helper()
	var all []capabilities.Connect
	eventually(t, fmt.Sprintf("%d connections are asked for", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		all = slices.Clone(w.asked)
		return len(all) >= n
	})
	out := map[string][]capabilities.Connect{}
	for _, c := range all {
		out[c.Host] = append(out[c.Host], c)
	}
	return out
}

// count is how many connections were asked for.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// Connections are asked for in the name of the command that makes them, although
// all of a session go to one address.
func TestConnectionsAreTheirCommands(t *testing.T) {
	w, s, ses := newWorld(t)
	w.deny("a.example", "b.example", "c.example", "child.example", "late.example", "java.example")
	asks := func(host string) string {
		return "curl -s -o /dev/null -m 20 http://" + host + "/"
	}
	loop := func(host string) string { return "while :; do " + asks(host) + "; sleep 0.01; done" }
	// Three at once, one of them at a terminal, and what a command has left behind.
	begin(t.Context(), t, s, ses, contained, bash(ses, loop("a.example")))
	begin(t.Context(), t, s, ses, contained, bash(ses, loop("b.example")))
	begin(t.Context(), t, s, ses, contained, at(ses, 80, 24, "/bin/bash", "-c", loop("c.example")))
	sh(t, s, ses, contained, "(setsid bash -c '"+loop("child.example")+"' &) >/dev/null 2>&1 </dev/null; sleep 0.1")
	// One that connects as the first thing it does, many times.
	for range 20 {
		sh(t, s, ses, contained, "exec "+asks("late.example"))
	}
	// One whose socket is of IPv6.
	sh(t, s, ses, contained, `python3 -c '
import socket
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:127.0.0.1", 3128))
s.sendall(b"CONNECT java.example:443 HTTP/1.1\r\n\r\n")
s.recv(1)'`)
	by := w.asking(t, 60)
	names := map[string]string{}
	for host, all := range by {
		for _, c := range all {
			if !strings.Contains(c.Line, host) {
				t.Errorf("%s is asked for by %q", host, c.Line)
			}
			if other, ok := names[c.Command]; ok && other != host {
				t.Errorf("%s and %s are asked for in the name of one command", host, other)
			}
			names[c.Command] = host
		}
	}
	if len(by) != 6 || len(by["late.example"]) != 20 {
		t.Errorf("asked for %d places, %d times for the last", len(by), len(by["late.example"]))
	}
	ids := map[string]bool{}
	for _, c := range by["late.example"] {
		ids[c.Command] = true
	}
	if len(ids) != 20 {
		t.Errorf("20 commands have %d names", len(ids))
	}
}

// hidden connects in ways that let nobody see whose the connection is. Each says
// what it was told.
var hidden = map[string]string{
	"a program that hides its open files": `
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
ask(socket.socket())`,
	"a thread with open files of its own": `
import threading
def alone():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    ask(socket.socket())
t = threading.Thread(target=alone); t.start(); t.join()`,
	"a program that has left already": `
s = socket.socket()
s.setblocking(False)
s.connect_ex(("127.0.0.1", 3128))
s.setblocking(True)
s.sendall(request)
s.shutdown(socket.SHUT_WR)`,
}

const hiding = `/usr/bin/python3 -c '
import socket, ctypes
request = b"CONNECT hidden.example:443 HTTP/1.1\r\n\r\n"
def talk(s):
    s.sendall(request)
    print(s.recv(100).decode().split("\r")[0])
def ask(s):
    s.connect(("127.0.0.1", 3128))
    talk(s)
%s'`

// What was allowed to one command never holds for a connection of which it can't
// be said that it is that command's: it is asked for as one of its own.
func TestWhatCantBeToldIsNobodys(t *testing.T) {
	w, s, ses := newWorld(t)
	w.deny("hidden.example")
	for what, text := range hidden {
		w.mu.Lock()
		w.asked = nil
		w.mu.Unlock()
		left := what == "a program that has left already"
		for tries, n := 0, 0; n < 3 && tries < 30; tries++ {
			r := do(t, s, ses, contained, bash(ses, fmt.Sprintf(hiding, text)))
			if r.exit.ExitCode != 0 || !left && !strings.Contains(r.out, " 403 ") {
				t.Errorf("%s: %q, %s", what, r.out, r.err)
			}
			if !left {
				n++
				w.asking(t, n)
				continue
			}
			// Where it was seen in time, it ends with its command, and nobody is asked.
			for end := time.Now().Add(time.Second); n == w.count() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			}
			n = w.count()
		}
		names := map[string]bool{}
		w.mu.Lock()
		asked := slices.Clone(w.asked)
		w.mu.Unlock()
		for _, c := range asked {
			names[c.Command] = true
			if left && c.Line != "" {
				continue // it was seen in time
			}
			if c.Line != "" || c.SessionID != ses.ID || c.Command == "" || c.Ended == nil {
				t.Errorf("%s: asked for as %+v", what, c)
			}
			select {
			case <-c.Ended:
			case <-time.After(20 * time.Second):
				t.Errorf("%s: its grant does not end with it", what)
			}
		}
		if len(names) != len(asked) || len(asked) < 3 || !left && len(asked) > 3 {
			t.Errorf("%s: asked for %d times, as %d commands", what, len(asked), len(names))
		}
	}
}

// Two commands that hold one socket are not told apart: neither lends the other
// its name.
func TestASocketOfTwoCommandsIsNobodys(t *testing.T) {
	w, s, ses := newWorld(t)
	w.deny("shared.example")
	// The lender keeps the socket open, and has been given leave by the person.
	begin(t.Context(), t, s, ses, contained, bash(ses, `exec python3 -c '
import socket, time
s = socket.socket()
u = socket.socket(socket.AF_UNIX); u.bind("\0lender"); u.listen()
open("up", "w")
c, _ = u.accept()
socket.send_fds(c, [b"x"], [s.fileno()])
time.sleep(600)'`))
	eventually(t, "the lender is up", func() bool { _, err := os.Stat(filepath.Join(ses.Folder, "up")); return err == nil })
	sh(t, s, ses, contained, `python3 -c '
import socket
u = socket.socket(socket.AF_UNIX); u.connect("\0lender")
s = socket.socket(fileno=socket.recv_fds(u, 1, 1)[1][0])
s.connect(("127.0.0.1", 3128))
s.sendall(b"CONNECT shared.example:443 HTTP/1.1\r\n\r\n")
s.recv(1)'`)
	for _, c := range w.asking(t, 1)["shared.example"] {
		if c.Line != "" {
			t.Errorf("asked for by %q", c.Line)
		}
	}
}

// A command can't take the place of the way out, nor of another's.
func TestTheWayOutCantBeTaken(t *testing.T) {
	_, s, ses := newWorld(t)
	for _, address := range []string{`("127.0.0.1", 3128)`, `("0.0.0.0", 3128)`, `("", 3128)`} {
		for _, option := range []string{"SO_REUSEADDR", "SO_REUSEPORT"} {
			text := "import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket." + option + ", 1); s.bind(" + address + "); s.listen()"
			if r := do(t, s, ses, contained, bash(ses, "python3 -c '"+text+"'")); r.exit.ExitCode == 0 {
				t.Errorf("%s, %s: taken", address, option)
			}
		}
	}
}

// Where each command has a container of its own it has its own way out there.
func TestContainersOfTheirOwnHaveAWayOut(t *testing.T) {
	w, s, ses := newWorld(t)
	s.OneEach()
	w.deny("own.example")
	if got := sh(t, s, ses, contained, "curl -s http://own.example/"); !strings.Contains(got, "did not allow it") {
		t.Errorf("%q", got)
	}
	if c := w.asking(t, 1)["own.example"][0]; !strings.Contains(c.Line, "own.example") {
		t.Errorf("asked for by %q", c.Line)
	}
}

// What the person has allowed one command, no other one of its session gets,
// whatever it tries while the first goes in and out.
func TestAnotherCommandsGrantIsNotBorrowed(t *testing.T) {
	w, s, ses := newWorld(t)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "granted") }))
	t.Cleanup(web.Close)
	w.serve(80, web.Listener.Addr().String())
	var may atomic.Value // the command that asked first
	w.mu.Lock()
	w.decide = func(c *capabilities.Connect) error {
		if may.CompareAndSwap(nil, c.Command) || may.Load() == c.Command {
			return nil
		}
		return wire.Errorf(wire.CodeDenied, "The person at this computer did not allow it.")
	}
	w.mu.Unlock()
	begin(t.Context(), t, s, ses, contained, bash(ses, "while :; do curl -s http://hidden.example/ > got; sleep 0.01; done"))
	eventually(t, "the one that may gets through", func() bool {
		b, _ := os.ReadFile(filepath.Join(ses.Folder, "got"))
		return string(b) == "granted"
	})
	attempts := map[string]string{
		"the same request":      "for i in $(seq 10); do curl -s http://hidden.example/; done",
		"its environment":       "set -a; . <(cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -i proxy); for i in 1 2 3; do curl -s http://hidden.example/; done",
		"a name in its log-in":  "curl -s -x http://1:x@127.0.0.1:3128 http://hidden.example/; curl -s -A bash http://hidden.example/",
		"another of its own":    "for p in $(seq 2 12); do curl -s --interface 127.0.0.$p http://hidden.example/; done",
		"what leads ssh around": "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /.localpc-spawn connect hidden.example 80",
	}
	for what, text := range hidden {
		attempts[what] = fmt.Sprintf(strings.Replace(hiding, "CONNECT hidden.example:443 HTTP/1.1", "GET http://hidden.example/ HTTP/1.1\\r\\nHost: hidden.example", 1), text)
	}
	for what, text := range attempts {
		if r := do(t, s, ses, contained, bash(ses, text)); strings.Contains(r.out, "granted") || strings.Contains(r.out, "200 OK") {
			t.Errorf("%s: %q", what, r.out)
		}
	}
}
