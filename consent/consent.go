// Package consent is step 4: nothing reaches an executor without a Grant, and
// only the Gate makes one. It holds what is asked (Request), what was answered
// (Answer, Decision), what may run (Grant) and what is remembered (Stored);
// it declares the decider, prompter, recorder and grant book it needs, and
// imports nothing of ours.
package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Mode is how a session may work, as its card was answered. Serialised.
type Mode string

const (
	ModeLook Mode = "look" // read in the folder
	// ModeWork: read and write in the folder, as far as old versions are kept;
	// contained commands.
	ModeWork Mode = "work"
	ModeAsk  Mode = "ask" // everything is asked
	// ModeTrusted is ModeWork that also changes and deletes in the folder
	// without asking. It holds for TrustedFor, and is ModeWork after that.
	ModeTrusted Mode = "trusted"
)

// TrustedFor is how long ModeTrusted and Minutes15 hold.
const TrustedFor = 15 * time.Minute

// UnusedFor is how long a grant without an end lives after its last use.
const UnusedFor = 30 * 24 * time.Hour

// Over tells whether what began at from, and holds for d, is over by now. It is
// when either clock says so: the steady one, which stands still while the
// computer sleeps, and the wall's, which a person may set.
func Over(from, now time.Time, d time.Duration) bool {
	wall := now.Round(0).Sub(from.Round(0))
	return now.Sub(from) >= d || wall >= d || wall < -time.Minute
}

// Scope is how long a decision holds. Serialised.
type Scope string

const (
	Once      Scope = "once"
	Command   Scope = "command" // until the command that asks has ended (network)
	Session   Scope = "session"
	Minutes15 Scope = "15m"
	Always    Scope = "always"
)

// Containment is where a command runs. Serialised.
type Containment string

const (
	Contained  Containment = "contained" // in a container that sees the session's folder only
	FullAccess Containment = "full"      // with the person's own rights
)

// Risk orders how careful a card has to be.
type Risk int

const (
	RiskLow    Risk = 1
	RiskNormal Risk = 2
	RiskHigh   Risk = 3
)

// EffectKind is one kind of thing that a request would do. Serialised.
type EffectKind string

const (
	EffectRead      EffectKind = "read"      // reads in the folder
	EffectCreate    EffectKind = "create"    // makes what is not there
	EffectOverwrite EffectKind = "overwrite" // replaces contents
	EffectDelete    EffectKind = "delete"
	EffectMove      EffectKind = "move"
	EffectStartup   EffectKind = "startup" // changes a name that other programs run
	EffectRun       EffectKind = "run"     // runs a program
	EffectEnv       EffectKind = "env"     // sets a variable that changes what runs
	EffectOwn       EffectKind = "own"     // ends or prolongs what the session itself started
	EffectAccess    EffectKind = "access"  // changes who may read, write or run files
	EffectConnect   EffectKind = "connect" // reaches another computer, or a service on this one
	EffectSettings  EffectKind = "settings"
	EffectInstall   EffectKind = "install" // adds or removes programs or packages
	EffectRoot      EffectKind = "root"    // asks for administrator rights
	EffectSee       EffectKind = "see"     // sees what is on the screen
	EffectControl   EffectKind = "control" // moves the mouse, clicks, types
	EffectClipboard EffectKind = "clipboard"
	EffectUnknown   EffectKind = "unknown" // can't be told before it runs: high risk
)

// Effect is one thing that a request would do, in words and counts.
type Effect struct {
	Kind  EffectKind `json:"kind"`
	Text  string     `json:"text"` // one short sentence
	Count int        `json:"count,omitempty"`
	Bytes int64      `json:"bytes,omitempty"`
	// Own means that the session itself made everything this touches.
	Own bool `json:"own,omitempty"`
	// Kept means that of everything else that this overwrites, deletes or moves
	// the old version is kept, so that a person can have it put back. It is set
	// where that is certain only; the executor makes sure of it again before it
	// begins, and returns ErrChanged where it can't be kept any more.
	Kept bool `json:"kept,omitempty"`
}

// Principal is who asks, as proven by a key.
type Principal struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Claims are what a program says about itself. They grant nothing and are
// shown in quotes.
type Claims struct {
	Agent string `json:"agent,omitempty"`
	Title string `json:"title,omitempty"`
}

// Digest is the SHA-256 of a request's exact payload.
type Digest [sha256.Size]byte

// DigestOf hashes v's JSON; map keys are sorted by encoding/json, so equal
// payloads have equal digests. It panics on what JSON cannot hold, which is a
// mistake of the caller.
func DigestOf(v any) Digest {
	b, err := json.Marshal(v)
	if err != nil {
		panic("consent: digest of what JSON cannot hold: " + err.Error())
	}
	return sha256.Sum256(b)
}

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Rule is what a remembered decision matches: everything in it must be equal.
type Rule struct {
	Hub        string      `json:"hub"`
	Principal  string      `json:"principal"`
	Folder     string      `json:"folder"`
	Capability string      `json:"capability"`
	Action     string      `json:"action"`
	Exact      string      `json:"exact"` // the exact text, or "" where the action alone is the rule
	Env        string      `json:"env,omitempty"`
	Cwd        string      `json:"cwd,omitempty"`
	Contain    Containment `json:"contain,omitempty"`
	// Effects are the kinds of things that the card told, sorted: a rule holds
	// for no more than that, whatever the same name would do later.
	Effects string `json:"effects,omitempty"`
	// Looked is the fingerprint of what was looked at for the card, such as the
	// scripts that a command names. It is set for full access only: what may do
	// everything must not be swapped behind its name.
	Looked string `json:"looked,omitempty"`
	// Wide means a rule for a capability and direction ("may read, not
	// write"): it holds for every request of Capability, and of Action where
	// that is set, in Folder, whose effects are all among Effects and whose risk
	// is not high. Exact, Env and Cwd are empty.
	Wide bool `json:"wide,omitempty"`
}

// Key is the rule as one comparable string.
func (r Rule) Key() string { b, _ := json.Marshal(r); return string(b) }

// Request is one thing asked for, with its exact payload's digest: what the
// policy judges, the card shows and the record keeps. It is plain data.
type Request struct {
	ID        string    `json:"id"`  // unique on this machine
	Hub       string    `json:"hub"` // the hub's id: "this" or its address
	HubName   string    `json:"hub_name"`
	Principal Principal `json:"principal"`
	Claims    Claims    `json:"claims"`
	Session   string    `json:"session"`
	Mode      Mode      `json:"mode,omitempty"` // of the session; "" for its own card
	Folder    string    `json:"folder"`         // the session's folder, or the wish
	// FolderOnly: a session card for Folder and no other.
	FolderOnly bool   `json:"folder_only,omitempty"`
	Capability string `json:"capability"` // "session", "files", "shell"
	Action     string `json:"action"`     // "open", "read", "write", "run", …

	Title    string `json:"title"`    // a few words for a list: "Run npm test"
	Sentence string `json:"sentence"` // the card's one sentence
	Exact    string `json:"exact"`    // the exact text; shown bytes are run bytes
	// Whole is set in the record only, where Exact is no more than the head of a
	// long text: the SHA-256 of the whole, which is kept as outputs are.
	Whole string `json:"whole,omitempty"`
	// Steps says in everyday words what happens, one short sentence a part, in
	// the order of the exact text.
	Steps   []string `json:"steps,omitempty"`
	Details []string `json:"details,omitempty"`
	Effects []Effect `json:"effects,omitempty"`
	Risk    Risk     `json:"risk"`

	Digest      Digest `json:"-"`
	Fingerprint string `json:"fingerprint,omitempty"` // of what was looked at

	// Containable says that it can run contained; FullOffered that the person
	// may choose full access instead.
	Containable bool `json:"containable,omitempty"`
	FullOffered bool `json:"full_offered,omitempty"`
	// Rule is what would be remembered, with Contain and Looked left empty.
	Rule   Rule    `json:"rule"`
	Scopes []Scope `json:"scopes,omitempty"` // offered, Once first
	// Wide is the broader rule that may be remembered instead, nil where none is
	// offered; WideWords says it in a few words: "reading in this folder".
	Wide      *Rule  `json:"wide,omitempty"`
	WideWords string `json:"wide_words,omitempty"`

	// Screens are offered to choose from, where pictures of them are asked for;
	// the rule's Exact is ScreensRule of those that are chosen.
	Screens []Screen `json:"screens,omitempty"`
	// Looks: the card shows what would be seen, as it is now; see Look.
	Looks bool `json:"looks,omitempty"`

	// Command is the id of the request whose command asks, for a connection; ""
	// otherwise. A grant of scope Command holds for it alone.
	Command string `json:"command,omitempty"`

	// Card names the question where the same request is asked anew; "" for the
	// first time, which ID names. What was shown before must not be answered for
	// what is shown now.
	Card string `json:"-"`

	// RepeatKey names the payload across sessions of a principal where the
	// session itself is what is asked for; "" means within the session.
	RepeatKey string `json:"-"`

	Arrived  time.Time `json:"arrived"`
	Deadline time.Time `json:"deadline"` // when the card closes
}

// Screen is one that the person may choose on a card.
type Screen struct {
	Name   string `json:"name"`             // unique: "DP-1"
	Label  string `json:"label"`            // "Screen 1 of 2, 1920 × 1080"
	Chosen bool   `json:"chosen,omitempty"` // beforehand
}

// JoinScreens and SplitScreens are how Choice.Screens holds names.
func JoinScreens(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

// SplitScreens is the inverse of JoinScreens.
func SplitScreens(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// ScreensRule is the exact text of a rule about the screens of a Choice.
func ScreensRule(screens string) string {
	return "screens: " + strings.Join(SplitScreens(screens), ", ")
}

// Look is a picture for a card: what would be seen of one screen, or where an
// action would go.
type Look struct {
	Request string `json:"request"`
	Screen  string `json:"screen,omitempty"` // its name; "" where it is of an action
	Data    []byte `json:"data"`             // a JPEG or PNG file
	// Note says what is blacked out, or why there is no picture.
	Note string `json:"note,omitempty"`
	// Covers are the windows that it does not show.
	Covers []Cover `json:"covers,omitempty"`
	// Under: one of this program's own lies over the place of the action.
	Under bool `json:"-"`
}

// Cover is a window that a Look does not show, in pixels of its picture: one of
// this program's own, which are grey and never in any picture, or one of the
// program Name, which is blacked out.
type Cover struct {
	Min  [2]int `json:"min"`
	Max  [2]int `json:"max"`
	Own  bool   `json:"own,omitempty"`
	Name string `json:"name,omitempty"`
}

// Choice is what the person chose beyond yes or no.
type Choice struct {
	// Screens are the names of those of Request.Screens that may be seen, sorted,
	// one a line (a Choice can be compared); see JoinScreens.
	Screens  string      `json:"screens,omitempty"`
	Scope    Scope       `json:"scope,omitempty"`
	Contain  Containment `json:"contain,omitempty"`
	Mode     Mode        `json:"mode,omitempty"`   // session card
	Folder   string      `json:"folder,omitempty"` // session card
	Remember bool        `json:"remember,omitempty"`
	// Wide remembers Request.Wide instead of its Rule.
	Wide bool `json:"wide,omitempty"`
	// End, with a denial, ends the session too.
	End bool `json:"end,omitempty"`
}

// Answer is a person's answer to one card.
type Answer struct {
	Allow  bool   `json:"allow"`
	Choice Choice `json:"choice"`
	Via    string `json:"via,omitempty"` // "card", "terminal"
}

// Outcome of a request's decision. Serialised.
type Outcome string

const (
	Allowed     Outcome = "allowed"
	Denied      Outcome = "denied"
	Expired     Outcome = "expired"     // shown, nobody answered
	Undelivered Outcome = "undelivered" // could not be shown
	Cancelled   Outcome = "cancelled"   // its request ended first
)

// Decision is what the record keeps of a request before anything runs.
type Decision struct {
	Outcome Outcome `json:"outcome"`
	// By says what decided: "you", "rule", "mode", "session" (it is its own),
	// "settings", "policy", "pause", "allow-next", "limit".
	By     string `json:"by"`
	Via    string `json:"via,omitempty"`    // Answer.Via, where a person decided
	Reason string `json:"reason,omitempty"` // one sentence
	Grant  string `json:"grant,omitempty"`  // id of the remembered grant that covered it
	Choice Choice `json:"choice"`
}

// Stored is a remembered decision.
type Stored struct {
	ID       string    `json:"id"`
	Rule     Rule      `json:"rule"`
	Deny     bool      `json:"deny,omitempty"`
	Scope    Scope     `json:"scope"`
	Session  string    `json:"session,omitempty"` // the session for Scope Session, the command for Scope Command
	Choice   Choice    `json:"choice"`
	Name     string    `json:"name"` // the principal's name when it was given
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"` // zero: does not expire by time
	LastUsed time.Time `json:"last_used,omitzero"`
}
