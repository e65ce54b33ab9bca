//go:build cgo

package robot_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities/computer/display/robot"
)

// start runs a program until the test ends.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// log is what a witness has said.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// wait waits until the witness has said all of want, in that order.
func (l *log) wait(t *testing.T, what string, want ...string) {
	t.Helper()
	lines := regexp.MustCompile(strings.Join(want, `(?s:.*?)`))
	for end := time.Now().Add(40 * time.Second); !lines.MatchString(l.String()); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: the witness heard\n%s", what, l)
		}
	}
}

// What robotgo does on X11 is what xev, which is not ours, hears: places,
// buttons, the wheel up and down and sideways, chords.
func TestHeardByXev(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "640x480x24")
	server.ExtraFiles = []*os.File{w}
	start(t, server)
	_ = w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	display := ":" + strings.TrimSpace(number)
	if err := robot.Use(display); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(robot.Close)
	var heard log
	xev := exec.Command("stdbuf", "-oL", "xev", "-geometry", "400x300+100+50")
	xev.Env = append(os.Environ(), "DISPLAY="+display)
	xev.Stdout = &heard
	start(t, xev)
	heard.wait(t, "a window", "MapNotify")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	robot.Move(150, 90)
	if x, y := robot.At(); x != 150 || y != 90 {
		t.Errorf("the pointer is at %d, %d", x, y)
	}
	heard.wait(t, "the place", `EnterNotify`, `root:\(150,90\)`)
	for _, b := range []string{"left", "right", "middle"} {
		must(robot.Button(b, true))
		must(robot.Button(b, false))
	}
	heard.wait(t, "clicks", `ButtonPress`, `button 1`, `ButtonRelease`, `button 1`, `ButtonPress`, `button 3`, `ButtonPress`, `button 2`, `ButtonRelease`)
	robot.Scroll(0, 1)
	robot.Scroll(0, -2)
	heard.wait(t, "the wheel", `button 4`, `button 5`, `button 5`)
	must(robot.Button("left", true))
	robot.Move(200, 120)
	must(robot.Button("left", false))
	heard.wait(t, "a drag", `ButtonPress`, `button 1`, `MotionNotify`, `root:\(200,120\)`, `ButtonRelease`)
	for _, down := range []bool{true, false} {
		must(robot.Key(0xffe3, down))
		must(robot.Key('s', down))
	}
	heard.wait(t, "a chord", `KeyPress`, `Control_L`, `KeyPress`, `state 0x4`, `keysym 0x73, s`, `KeyRelease`)
	must(robot.Key(0xff56, true))
	must(robot.Key(0xff56, false))
	heard.wait(t, "a named key", `KeyPress`, `Next`, `KeyRelease`)
	if err := robot.Key(0x1004f60, true); err == nil {
		t.Error("a key that there is not was pressed")
	}
}
