package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Computer is what is set for screen, mouse and keyboard.
type Computer struct {
	// PerAction: each action is asked for, with a picture of where it goes.
	PerAction bool `toml:"per_action"`
	// Clipboard is what may be read of it: "own" (what the session put there
	// itself, for half a minute), "all" (asked each time), "off" (nor written).
	Clipboard string `toml:"clipboard"`
	// Hide are words of windows that are blacked out in every picture: of their
	// title, class or program; "=word" is the whole class or program.
	Hide Words `toml:"hide"`
	// HideUsual adds the usual ones: password managers, prompts of keychains,
	// private browsing. It is so where the file does not say.
	HideUsual bool `toml:"hide_usual"`
	// RemoteAnswers: cards may be answered by software that moves the mouse for
	// the person.
	RemoteAnswers bool `toml:"remote_answers"`
}

// Limits of Computer.Hide.
const (
	MaxHide     = 200 // words
	MaxHideWord = 200 // characters of one
)

// ErrHide is what is wrong with the words of Computer.Hide, for a person.
var ErrHide = fmt.Errorf("the windows to hide are at most %d words of up to %d characters each, without line breaks", MaxHide, MaxHideWord)

// Words is a list that can be compared; in the file it is an array.
type Words string

// WordsOf makes Words of a list, without what is empty or there twice.
func WordsOf(list []string) Words {
	var out []string
	for _, w := range list {
		if w = strings.TrimSpace(w); w != "" && w != "=" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return Words(strings.Join(out, "\n"))
}

// List is the inverse of WordsOf.
func (w Words) List() []string {
	if w == "" {
		return nil
	}
	return strings.Split(string(w), "\n")
}

// CheckHide tells whether the words of a list can be kept.
func CheckHide(list []string) error {
	if len(list) > MaxHide {
		return ErrHide
	}
	for _, w := range list {
		if utf8.RuneCountInString(w) > MaxHideWord || !utf8.ValidString(w) || strings.ContainsAny(w, "\n\r\x00") {
			return ErrHide
		}
	}
	return nil
}

// UnmarshalTOML implements toml.Unmarshaler.
func (w *Words) UnmarshalTOML(v any) error {
	list, ok := v.([]any)
	var out []string
	for _, e := range list {
		s, text := e.(string)
		ok = ok && text
		out = append(out, s)
	}
	if !ok {
		return errors.New(`it must be a list of texts: ["…", "…"]`)
	}
	if err := CheckHide(out); err != nil {
		return err
	}
	*w = WordsOf(out)
	return nil
}

// MarshalTOML implements toml.Marshaler.
func (w Words) MarshalTOML() ([]byte, error) {
	list := w.List()
	if list == nil {
		list = []string{}
	}
	b, err := toml.Marshal(map[string][]string{"w": list})
	if err != nil {
		return nil, err
	}
	return []byte(strings.TrimSpace(strings.TrimPrefix(string(b), "w = "))), nil
}

// usualComputer is what holds where the file does not say.
var usualComputer = Computer{Clipboard: "own", HideUsual: true}

func (c Computer) filled() Computer {
	if c.Clipboard == "" {
		c.Clipboard = usualComputer.Clipboard
	}
	return c
}

func (c Computer) check() error {
	if c.Clipboard != "own" && c.Clipboard != "all" && c.Clipboard != "off" {
		return errors.New(`clipboard, below [computer], must be "own", "all" or "off"`)
	}
	return CheckHide(c.Hide.List())
}
