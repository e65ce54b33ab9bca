package kit

import (
	"strings"
	"testing"

	"fyne.io/fyne/v2/test"

	"localpc/consent"
)

func themed(t *testing.T) {
	app := test.NewApp()
	app.Settings().SetTheme(&Theme{Force: "light"})
	t.Cleanup(app.Quit)
}

func exact(t *testing.T, text string) *Exact {
	t.Helper()
	themed(t)
	return NewExact(240, 8, nil, text)
}

// What is drawn is consent.Visible of the text and nothing else, however it is
// broken into lines.
func TestExactShowsEverything(t *testing.T) {
	for _, text := range []string{
		"", "a", "one\ntwo\n", "\n\n", strings.Repeat("abc ", 60), strings.Repeat("\u202e", 40),
		"wide 世界" + strings.Repeat("世", 50), "e\u0301 combining", "bytes \xff\xfe", "\x00\x1b[0m\r\n", `typed \n and \u202e`,
	} {
		var b strings.Builder
		for i, l := range exact(t, text).Lines() {
			l, on := strings.CutPrefix(l, "↳ ")
			if i > 0 && !on {
				b.WriteByte('\n')
			}
			b.WriteString(l)
		}
		want := strings.TrimSuffix(consent.Visible(text, true), "\n")
		if got := b.String(); got != want {
			t.Errorf("%q is drawn as %q, want %q", text, got, want)
		}
	}
}

func TestExactMarksEscapes(t *testing.T) {
	e := exact(t, "\u202e\\u202e")
	line := e.lines[0]
	if len(line) != 2 || line[0].ink != Risk || line[1].ink != Ink || line[0].text != line[1].text {
		t.Errorf("an escape and the same characters typed look alike: %+v", line)
	}
}

func TestExactList(t *testing.T) {
	themed(t)
	e := NewExactList(400, 4, nil, []string{"A=1\nB=2", "", "C=3"})
	if got := strings.Join(e.Lines(), "|"); got != `A=1\nB=2||C=3` {
		t.Errorf("lines %q", got)
	}
}

func TestExactFollowsItsEnd(t *testing.T) {
	themed(t)
	e := NewExact(240, 4, nil, "")
	e.Follow = true
	w := test.NewWindow(e)
	defer w.Close()
	text := strings.Repeat("line\n", 4)
	e.Set(text)
	w.Resize(e.MinSize())
	for range 20 {
		text += "line\n"
		e.Set(text)
	}
	if e.rows.Offset() == 0 {
		t.Error("output that grows does not stay at its end")
	}
	e.rows.scrollTo(0)
	e.Set(text + "more\n")
	if got := e.rows.Offset(); got != 0 {
		t.Errorf("a place that was scrolled to is lost: %v", got)
	}
}

func TestFlowClipsAndKeepsAll(t *testing.T) {
	themed(t)
	long := strings.Repeat("w", 300)
	f := NewLine(200, Body, 2, Remote(long, Bold("", Ink))...)
	if f.MinSize().Width > 200 || f.MinSize().Height > 2*f.lineHeight() {
		t.Errorf("300 letters take %v", f.MinSize())
	}
	whole := NewFlow(200, Body, Remote(long, Bold("", Ink))...)
	drawn := ""
	for _, p := range whole.placed {
		drawn += p.text.Text
	}
	if drawn != long {
		t.Errorf("%d letters are drawn of 300", len(drawn))
	}
}

// Words of scripts that run the other way keep the spaces around them.
func TestOneWay(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"plain words, 3":        "plain words, 3",
		"שלום לך wants to":      "שלום לך| wants to",
		"delete in תמונות":      "delete in |תמונות",
		"in תמונות.":            "in |תמונות|.",
		"עוזר wants תמונות now": "עוזר| wants |תמונות| now",
		"a é\u0301 b":           "a é\u0301 b",
	} {
		got := strings.Join(oneWay(in), "|")
		if got != want {
			t.Errorf("%q is cut into %q, want %q", in, got, want)
		}
	}
}
