package display

import (
	"image"
	"reflect"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

func TestParseChord(t *testing.T) {
	system := func(name string) keysym {
		return map[string]keysym{"XF86AudioPlay": 0x1008ff14, "Iso_First_Group": 0xfe0c}[name]
	}
	for chord, want := range map[string][]keysym{
		"ctrl+s": {symControl, 's'}, "Return": {symReturn}, "enter": {symReturn}, "ENTER": {symReturn},
		"ctrl + shift + T": {symControl, symShift, 'T'}, "a": {'a'}, "A": {'A'}, "ß": {0xdf}, "Ж": {unicodeSym + 'Ж'},
		"+": {'+'}, "ctrl++": {symControl, '+'}, "ctrl+plus": {symControl, '+'}, "-": {'-'},
		"super": {symSuper}, "meta": {symSuper}, "win": {symSuper}, "cmd+c": {symSuper, 'c'}, "Super_L": {symSuper},
		"Page_Up": {0xff55}, "pageup": {0xff55}, "prior": {0xff55}, "Next": {0xff56}, "pagedown": {0xff56},
		"del": {0xffff}, "Delete": {0xffff}, "BackSpace": {symBackSpace}, "esc": {0xff1b}, "Escape": {0xff1b}, "space": {' '}, "Tab": {symTab},
		"up": {0xff52}, "Down": {0xff54}, "F1": {0xffbe}, "f24": {0xffbe + 23}, "alt+F4": {symAlt, 0xffbe + 3},
		"XF86AudioPlay": {0x1008ff14}, "scroll_lock": {0xff14}, "iso_first_group": {0xfe0c}, "KP_5": {0xffb5}, "😀": {unicodeSym + '😀'},
	} {
		got, err := parseChord(chord, system)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %x, %v; want %x", chord, got, err, want)
		}
	}
	for _, chord := range []string{"", "ctrl+", "+a", "ctrl+nokey", "f25", "f0", "ctrl+a+b+c+d+e+f+g+h", "\x01", "ctrl++s"} {
		if got, err := parseChord(chord, nil); wire.CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%q is %x, %v", chord, got, err)
		}
	}
	if _, err := parseChord("ctrl+nokey", nil); !strings.Contains(err.Error(), `"nokey"`) {
		t.Errorf("the error does not name the key: %v", err)
	}
}

func testMap(spare ...byte) *keymap {
	m := &keymap{syms: map[keysym][]stroke{}, spare: spare, bound: map[keysym]byte{}}
	m.holds[0] = 50
	m.syms['a'] = []stroke{{38, 0, 0}}
	m.syms['A'] = []stroke{{38, 0, 1}}
	m.syms['@'] = []stroke{{24, 0, 0x80}} // behind a modifier that no key holds
	m.syms[symReturn] = []stroke{{36, 0, 0}, {36, 1, 0}}
	m.syms[0x6c6] = []stroke{{38, 1, 0}} // Cyrillic ef
	return m
}

func TestPlan(t *testing.T) {
	m := testMap(200, 201)
	got, err := m.plan("aA\r\nф@é@", 0)
	want := []piece{{bind: map[byte]keysym{200: '@', 201: 0xe9}, strokes: []stroke{
		{38, 0, 0}, {38, 0, 1}, {36, 0, 0}, {38, 1, 0}, {200, anyGroup, 0}, {201, anyGroup, 0}, {200, anyGroup, 0}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	// A third character takes a key only when nothing typed before needs it.
	got, err = m.plan("@éñ@", 0)
	if err != nil || len(got) != 2 || len(got[0].strokes) != 2 || len(got[1].strokes) != 2 || len(got[1].bind) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	// What a spare key means already is used again, and given up when others
	// are needed.
	m.bound[0xe9] = 201
	if got, err = m.plan("é", 0); err != nil || len(got) != 1 || len(got[0].bind) != 0 || got[0].strokes[0].code != 201 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = m.plan("ñ@", 0); err != nil || len(got) != 1 || len(got[0].bind) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := testMap().plan("é", 0); wire.CodeOf(err) != wire.CodeNotSupported {
		t.Errorf("without a spare key: %v", err)
	}
	for _, text := range []string{"a\x00", "a\x1b[A", "\x7f", "a\xff"} {
		if _, err := m.plan(text, 0); wire.CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPersonMoves(t *testing.T) {
	at := time.Now().Add(-time.Minute)
	var p person
	for n := range 1000 { // an unquiet table
		at = at.Add(8 * time.Millisecond)
		if busy, _ := p.moved(float64(1-2*(n%2))*3, 0, at); busy {
			t.Fatalf("jitter %d is the person", n)
		}
	}
	if p.after(time.Time{}) {
		t.Fatal("jitter was at work")
	}
	began, told := at, 0
	for range 100 { // a slow hand
		at = at.Add(10 * time.Millisecond)
		if _, tell := p.moved(1, 1, at); tell {
			told++
		}
	}
	if !p.after(began) || told < 5 || told > 10 {
		t.Errorf("a second of moving was told %d times, busy %v", told, p.after(began))
	}
	if p.after(at) {
		t.Error("it is at work after the last movement")
	}
	if !p.pressed(at.Add(time.Second)) || !p.after(at) {
		t.Error("a key does not count at once")
	}
	// Far in one step counts whatever came before.
	var q person
	if busy, tell := q.moved(0, -8, at); !busy || !tell {
		t.Error("8 pixels at once are not the person")
	}
}

func TestThin(t *testing.T) {
	var long []image.Point
	for n := range 5000 {
		long = append(long, image.Pt(n, 2*n))
	}
	got := thin(long)
	if len(got) != maxPath || got[0] != long[0] || got[len(got)-1] != long[4999] {
		t.Errorf("%d points, from %v to %v", len(got), got[0], got[len(got)-1])
	}
	got = thin([]image.Point{{0, 0}, {80, 0}, {80, 40}})
	for _, p := range []image.Point{{0, 0}, {10, 0}, {80, 0}, {80, 5}, {80, 40}} {
		if !containsPoint(got, p) {
			t.Errorf("%v is left out of %v", p, got)
		}
	}
	if got := thin(long[:50]); !reflect.DeepEqual(got, long[:50]) {
		t.Error("a path of 50 points is changed")
	}
}

func containsPoint(all []image.Point, p image.Point) bool {
	for _, q := range all {
		if p == q {
			return true
		}
	}
	return false
}

func TestBounds(t *testing.T) {
	l := space.Layout{Screens: []space.Screen{
		{Index: 0, Device: image.Rect(-1280, 200, 0, 1224)}, {Index: 1, Device: image.Rect(0, 0, 1920, 1080)}, {Index: 2, Device: image.Rect(1920, -300, 3000, 1620)}}}
	for p, ok := range map[image.Point]bool{{-1280, 200}: true, {-1, 1223}: true, {10, 100}: true, {1919, 1079}: true, {1920, -300}: true, {2999, 1619}: true,
		{-1281, 300}: false, {-10, 100}: false, {0, 1080}: false, {1920, -301}: false, {3000, 0}: false} {
		err := bounds(hands.Action{Kind: hands.Click, At: &p}, l)
		if (err == nil) != ok {
			t.Errorf("%v: %v", p, err)
		}
	}
	err := bounds(hands.Action{Kind: hands.Drag, Path: []image.Point{{10, 10}, {-10, 100}, {20, 20}}}, l)
	e, ok := err.(*wire.Error)
	want := map[string]any{"requested_coordinate": []int{-10, 100}, "displays": []map[string]any{
		{"index": 0, "origin": []int{-1280, 200}, "size": []int{1280, 1024}},
		{"index": 1, "origin": []int{0, 0}, "size": []int{1920, 1080}},
		{"index": 2, "origin": []int{1920, -300}, "size": []int{1080, 1920}}}}
	if !ok || e.Code != wire.CodeBounds || !reflect.DeepEqual(e.Details, want) {
		t.Errorf("%+v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, a := range []hands.Action{{Kind: "dance"}, {Kind: hands.Move}, {Kind: hands.Click, Count: 4}, {Kind: hands.Click, Button: "left hand"},
		{Kind: hands.Click, Modifiers: []string{"hyper"}}, {Kind: hands.Drag, Path: []image.Point{{1, 1}}}, {Kind: hands.Key, Repeat: 101}, {Kind: hands.Key, Repeat: -1},
		{Kind: hands.HoldKey, Hold: 301 * time.Second}, {Kind: hands.Scroll, Direction: "sideways"}, {Kind: hands.Scroll, Direction: "up", Amount: -1},
		{Kind: hands.Type, Text: strings.Repeat("a", wire.MaxTyped+1)}} {
		if err := check(&a); wire.CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%+v: %v", a, err)
		}
	}
}
