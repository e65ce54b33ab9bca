// Package snapshot is step 7: what the tray and the windows draw, and the
// intents they send. Plain serialisable data, a leaf.
package snapshot

import "time"

// State is what the tray icon shows, one at a time. Serialised.
type State string

const (
	Offline  State = "offline"
	Online   State = "online"
	Working  State = "working"
	NeedsYou State = "needs-you"
	Paused   State = "paused"
	SignIn   State = "sign-in"
)

// Snapshot is the whole state at one moment. A published one never changes.
type Snapshot struct {
	Seq     uint64 `json:"seq"`
	Machine string `json:"machine"` // its name
	State   State  `json:"state"`
	// Line is the state in a few words: "Claude is working".
	Line string `json:"line"`
	// Problem is one sentence that says what is wrong and Fix the intent that
	// mends it with FixLabel on its button; all "" when nothing is wrong.
	Problem  string     `json:"problem,omitempty"`
	Fix      IntentKind `json:"fix,omitempty"`
	FixLabel string     `json:"fix_label,omitempty"`

	Hub Hub `json:"hub"`
	// Secrets is where tokens and keys are, in a few words: "in the keychain".
	Secrets string   `json:"secrets"`
	Paused  bool     `json:"paused"`
	Stopped *Stopped `json:"stopped,omitempty"` // after Stop everything, until resumed
	// Warnings are said loudly in every window until they are dismissed: no
	// containment, no keychain. Standing ones can't be: full access by policy.
	Warnings []string `json:"warnings,omitempty"`
	Standing []string `json:"standing,omitempty"`
	// Policy says what was answered before anybody was asked (--policy); "" for
	// nothing.
	Policy string `json:"policy,omitempty"`

	Waiting  int       `json:"waiting"` // cards that wait, the open one too
	Sessions []Session `json:"sessions"`
	// Entries is the newest part of the log, newest first, at most MaxEntries.
	Entries []Entry `json:"entries"`
	Record  Record  `json:"record"`
	Today   Traffic `json:"today"`
	Connect Connect `json:"connect"`
	// Grants are what is remembered, the newest first; Programs what is
	// connected.
	Grants   []Grant   `json:"grants,omitempty"`
	Programs []Program `json:"programs,omitempty"`
	// Capabilities are what may be asked for.
	Capabilities []Capability `json:"capabilities,omitempty"`
	Settings     Settings     `json:"settings"`
	// Control is set while a program may see the screen, or use mouse and
	// keyboard, and while a pause holds it up: the strip shows it.
	Control *Control `json:"control,omitempty"`
}

// Control says who sees the screen, or has mouse and keyboard, at the moment.
type Control struct {
	Session string    `json:"session"`
	Who     string    `json:"who"` // the principal's name
	Sees    bool      `json:"sees,omitempty"`
	Acts    bool      `json:"acts,omitempty"`
	Since   time.Time `json:"since"`
	// Person: the person's own hands are at work, so the program waits.
	Person bool `json:"person,omitempty"`
	// Colour of the frame on the screens: "#rrggbb".
	Colour string `json:"colour"`
	// StopKey stops everything, as it is really bound; "" where none is.
	StopKey string `json:"stop_key,omitempty"`
}

// Computer is what Settings shows of the screen, mouse and keyboard.
type Computer struct {
	// PerAction: each action is asked for, with a picture of where it goes.
	PerAction bool `json:"per_action,omitempty"`
	// Clipboard is what may be read of it: "own" (what the program put there
	// itself), "all" (asked each time), "off".
	Clipboard string `json:"clipboard"`
	// Hide are the person's own words for windows that are blacked out in every
	// picture; HideUsual adds Usual to them.
	Hide      []string `json:"hide,omitempty"`
	HideUsual bool     `json:"hide_usual"`
	Usual     []string `json:"usual,omitempty"`
	// Remote: cards may be answered by software that moves the mouse for the
	// person (remote control, assistive).
	Remote bool `json:"remote,omitempty"`
	// Problems are sentences about what does not work on this display.
	Problems       []string `json:"problems,omitempty"`
	StopKey        string   `json:"stop_key,omitempty"`
	StopKeyProblem string   `json:"stop_key_problem,omitempty"`
	// Test is the last screen test; nil before there was one. Testing: one is
	// under way.
	Test    *ScreenTest `json:"test,omitempty"`
	Testing bool        `json:"testing,omitempty"`
}

// ScreenTest is how a screen test ended.
type ScreenTest struct {
	OK      bool      `json:"ok"`
	Text    string    `json:"text"` // "3 screens OK", or what is off
	Screens []Check   `json:"screens,omitempty"`
	At      time.Time `json:"at"`
}

// Grant is one remembered decision, as the Permissions window lists it.
type Grant struct {
	ID       string    `json:"id"`
	Who      string    `json:"who"`
	May      string    `json:"may"` // the rule, exactly as it will match
	Deny     bool      `json:"deny,omitempty"`
	Scope    string    `json:"scope"`              // "this session", "15 minutes", "always"
	Until    time.Time `json:"until,omitzero"`     // zero: no end by time; for "always" it ends when unused
	LastUsed time.Time `json:"last_used,omitzero"` // zero: never
	Session  string    `json:"session,omitempty"`  // set for "this session"
}

// Program is one principal that the person connected.
type Program struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Since    time.Time `json:"since,omitzero"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	Sessions int       `json:"sessions"` // open ones
	// CanDisconnect: its key belongs to the hub inside. Otherwise it is
	// disconnected on the hub's page.
	CanDisconnect bool `json:"can_disconnect,omitempty"`
}

// Capability is one kind of thing that may be asked for, or may not.
type Capability struct {
	Name   string `json:"name"`   // "files", "shell", "network"
	Label  string `json:"label"`  // "Files"
	Extent string `json:"extent"` // the Value of the one of Extents that holds
	// Extents are the choices, the widest first, the last is "off".
	Extents []Extent `json:"extents"`
}

// Extent is how far a capability goes.
type Extent struct {
	Value string `json:"value"` // "ask", "read", "contained", "off"
	Label string `json:"label"` // "May be asked for", "Reading only", "Never"
}

// Settings are what the Settings window shows and changes.
type Settings struct {
	Name      string `json:"name"`   // of this computer
	Folder    string `json:"folder"` // offered first; "" for a new one
	Autostart bool   `json:"autostart"`
	// AutostartProblem says why it can't be switched on here; "" when it can.
	AutostartProblem string `json:"autostart_problem,omitempty"`
	// Rates are requests a minute, per session and capability.
	Rates   []Rate `json:"rates"`
	Data    string `json:"data"` // where everything is kept
	Version string `json:"version"`
	// KeepGB is how much of old versions is kept at most, -1 for none, KeepUsual
	// the default; KeptBytes how much there is.
	KeepGB    int   `json:"keep_gb"`
	KeepUsual int   `json:"keep_usual"`
	KeptBytes int64 `json:"kept_bytes"`
	// Checks are the last self-test's results; empty before there was one.
	Checks   []Check `json:"checks,omitempty"`
	Checking bool    `json:"checking,omitempty"`
	// Computer is nil where this build, or this computer, has no display.
	Computer *Computer `json:"computer,omitempty"`
}

// Rate is how many requests of one capability a session may make a minute.
type Rate struct {
	Capability string `json:"capability"`
	Label      string `json:"label"`
	PerMinute  int    `json:"per_minute"`
	Usual      int    `json:"usual"` // the default
}

// Check is one line of the self-test.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Text   string `json:"text"`             // what was found
	Remedy string `json:"remedy,omitempty"` // what helps
}

// MaxEntries is how many log entries a snapshot carries.
const MaxEntries = 300

// Hub is the other end.
type Hub struct {
	Paired  bool   `json:"paired"`
	Kind    string `json:"kind"` // "", "this", "own", "autogpt"
	Name    string `json:"name"`
	Address string `json:"address"`
	// Account is whose computer this is there, as the hub said when it was last
	// online; "" where it did not.
	Account string `json:"account,omitempty"`
	Online  bool   `json:"online"`
	// SignIn says in a few words how the sign-in there is: "kept in the
	// keychain", "ended"; "" before it was used. Proxy is what the hub is
	// reached through, HOST:PORT; "" for none.
	SignIn string `json:"sign_in,omitempty"`
	Proxy  string `json:"proxy,omitempty"`
}

// Stopped reports what Stop everything did.
type Stopped struct {
	Commands int       `json:"commands"`
	Sessions int       `json:"sessions"`
	At       time.Time `json:"at"`
}

// Session is one open session.
type Session struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Agent     string    `json:"agent,omitempty"`
	Title     string    `json:"title,omitempty"`
	Folder    string    `json:"folder"`
	Mode      string    `json:"mode"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Running   int       `json:"running"` // requests and children
	// TrustedUntil is when "Trusted for 15 minutes" ends; zero when it does not
	// hold.
	TrustedUntil time.Time `json:"trusted_until,omitzero"`
	// Denied is how many of its questions were denied one after the other; from
	// DeniedOften on, windows and cards offer to end it.
	Denied int `json:"denied,omitempty"`
	// Asleep: its program paused it; its processes stand still.
	Asleep bool `json:"asleep,omitempty"`
	// CanUndo is how many of its requests can be undone.
	CanUndo int `json:"can_undo,omitempty"`
}

// DeniedOften is how many denials in a row make a session one to be ended.
const DeniedOften = 3

// Outcome of a log entry. Serialised.
type Outcome string

const (
	Asking      Outcome = "asking" // a card is open, or queued
	Running     Outcome = "running"
	Done        Outcome = "done"
	Failed      Outcome = "failed"  // ran, and ended badly
	Halted      Outcome = "stopped" // ended by the person or by its session's end
	Denied      Outcome = "denied"
	Expired     Outcome = "expired"
	Undelivered Outcome = "undelivered"
	Cancelled   Outcome = "cancelled"
	// Allowed: by the person, when its program had stopped waiting. It runs
	// when it is asked again.
	Allowed Outcome = "allowed"
)

// Entry is one line of the log: one request.
type Entry struct {
	ID         string        `json:"id"`
	Time       time.Time     `json:"time"`
	Who        string        `json:"who"`
	What       string        `json:"what"`
	Capability string        `json:"capability"`
	Outcome    Outcome       `json:"outcome"`
	Result     string        `json:"result,omitempty"` // "exit code 0"
	By         string        `json:"by,omitempty"`     // what allowed or refused it
	Took       time.Duration `json:"took"`
	Sent       int64         `json:"sent"`
	Received   int64         `json:"received"`
	// CanStop: it runs. CanAllowNext: its card has gone unanswered or could
	// not be shown, and the same request may be let through next time.
	CanStop      bool `json:"can_stop,omitempty"`
	CanAllowNext bool `json:"can_allow_next,omitempty"`
	AllowedNext  bool `json:"allowed_next,omitempty"`
	// Left is how many children of it still run.
	Left int `json:"left,omitempty"`
	// CanUndo: what it changed was kept, and can be put back. Undone: it was.
	CanUndo bool `json:"can_undo,omitempty"`
	Undone  bool `json:"undone,omitempty"`
}

// Detail is what one entry shows when it is opened. All text is as it was;
// who draws it neutralises it.
type Detail struct {
	Entry    Entry    `json:"entry"`
	Sentence string   `json:"sentence"`
	Where    string   `json:"where"` // "Kept inside its folder project · network only as you allow"
	Exact    string   `json:"exact"`
	Details  []string `json:"details,omitempty"`
	Output   string   `json:"output"` // so far
	// Picture is exactly the file that was sent, where one was; PictureType its
	// MIME type.
	Picture     []byte   `json:"picture,omitempty"`
	PictureType string   `json:"picture_type,omitempty"`
	Notes       []string `json:"notes,omitempty"`
	Reason      string   `json:"reason,omitempty"`
}

// Record says whether the record is whole.
type Record struct {
	OK      bool      `json:"ok"`
	Since   time.Time `json:"since"`
	Problem string    `json:"problem,omitempty"`
}

// Traffic of today, contents only.
type Traffic struct {
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
}

// Connect is what the Pair window's last page shows.
type Connect struct {
	// Lines are to be copied into a program's environment; they hold a key
	// that is shown once. Empty until a key was asked for.
	Name  string   `json:"name,omitempty"`
	Lines []string `json:"lines,omitempty"`
	// PairError says why pairing failed, in one sentence.
	PairError string `json:"pair_error,omitempty"`
	Pairing   bool   `json:"pairing,omitempty"`
	// Practice is "", "running", "done" or a sentence that says what went wrong.
	Practice string `json:"practice,omitempty"`
	// SignIn is the sign-in at a hub that is under way; nil when there is none.
	SignIn *SigningIn `json:"sign_in,omitempty"`
	// AutoGPT is what Pair offers for the AutoGPT platform.
	AutoGPT AutoGPT `json:"autogpt"`
	// AutoGPTUsual is what "Reset to defaults" puts there.
	AutoGPTUsual AutoGPT `json:"autogpt_usual"`
	// Clients are the programs that are known here, and Any what other MCP
	// clients take; empty where programs come through AutoGPT, or not at all. For
	// the hub inside, Any has AnyName in it, and is empty until MakeKey gave such
	// a program its key.
	Clients []Client `json:"clients,omitempty"`
	Any     []string `json:"any,omitempty"`
	AnyName string   `json:"any_name,omitempty"`
}

// AnyProgram is what a program that is not known here is called where nobody
// names it.
const AnyProgram = "My program"

// Client is a program on this computer whose own settings can connect it.
type Client struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Found: it is on this computer. Connected: its settings lead here.
	Found     bool `json:"found,omitempty"`
	Connected bool `json:"connected,omitempty"`
	// File gets Lines when the person says so. Problem says in one sentence why
	// it can't, so that they have to put them there; "" when it can.
	File    string   `json:"file"`
	Lines   []string `json:"lines"`
	Problem string   `json:"problem,omitempty"`
	// Next is what to do once it is connected; Around which of its own tools
	// never ask here, and Off with OffLines how they are switched off.
	Next     string   `json:"next"`
	Around   string   `json:"around"`
	Off      string   `json:"off,omitempty"`
	OffLines []string `json:"off_lines,omitempty"`
}

// SigningIn is a sign-in on its way: first the browser, or where there is none a
// code that is typed on another device.
type SigningIn struct {
	Kind  string      `json:"kind"` // "own", "autogpt"
	Hub   string      `json:"hub"`  // its address
	Stage SignInStage `json:"stage"`
	// Match is the short code that must be the same on the hub's page.
	Match string `json:"match,omitempty"`
	// URL is the page to open; with UserCode, the page to type that in.
	URL      string    `json:"url,omitempty"`
	UserCode string    `json:"user_code,omitempty"`
	Until    time.Time `json:"until"` // when it is given up
}

// SignInStage is how far a sign-in is. Serialised.
type SignInStage string

const (
	SignInStarting  SignInStage = "starting"  // asks the hub how to sign in
	SignInBrowser   SignInStage = "browser"   // the browser was opened; URL, Match
	SignInCode      SignInStage = "code"      // URL, UserCode
	SignInFinishing SignInStage = "finishing" // the person has agreed
)

// AutoGPT is where an AutoGPT platform is, as settings.AutoGPT has it.
type AutoGPT struct {
	Web      string `json:"web"`
	API      string `json:"api"`
	WS       string `json:"ws"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	Ports    string `json:"ports"` // "41899-41910"
}

// IntentKind is a thing that a person can want. Serialised.
type IntentKind string

const (
	// Pair: Text is "" or "this" for the hub inside, "autogpt" (with AutoGPT
	// where its addresses were changed), the address of an own hub to sign in
	// at, or the pairing line that one printed. Way is "" for the browser, or
	// "code". It returns when the computer is paired, or not.
	Pair       IntentKind = "pair"
	CancelPair IntentKind = "cancel-pair" // ends the sign-in that is under way
	Unpair     IntentKind = "unpair"      //
	Reconnect  IntentKind = "reconnect"   // to the hub it is paired with
	Pause      IntentKind = "pause"       //
	Resume     IntentKind = "resume"      //
	StopAll    IntentKind = "stop-all"    // Text: the Window that then shows that it is so, where there is a display
	StopOne    IntentKind = "stop-one"    // Entry
	AllowNext  IntentKind = "allow-next"  // Entry
	// MakeKey: Text is the program's name; Way "mcp" is for the lines of an MCP
	// client that takes an address, "bridge" for one that starts localpc mcp: its
	// key, unless it has one, is kept for it and not shown.
	MakeKey     IntentKind = "make-key"
	ForgetKey   IntentKind = "forget-key"
	Practice    IntentKind = "practice"
	Export      IntentKind = "export" // Text: the file to write
	ShowCard    IntentKind = "show-card"
	ShowWindow  IntentKind = "show-window" // Text: a Window; "" for the card that waits, or the window seen last
	GetDetail   IntentKind = "get-detail"  // Entry; the answer is a Detail
	Find        IntentKind = "find"        // Text and Filter; the answer is Entries
	VerifyAgain IntentKind = "verify"
	Revoke      IntentKind = "revoke" // Text: a grant's id, "" for all of them
	// Dismiss takes one of Warnings, Text, away until the program's next start.
	Dismiss IntentKind = "dismiss"
	// CheckSecrets tries whether secrets can be kept; the answer says where.
	CheckSecrets IntentKind = "check-secrets"
	// SetCapability: Text is its name, Way the extent's value.
	SetCapability IntentKind = "set-capability"
	// SetMode changes how an open session may work: Entry is its id, Text a
	// consent.Mode. EndSession ends it.
	SetMode    IntentKind = "set-mode"
	EndSession IntentKind = "end-session"
	// Disconnect takes a program's key away, with its sessions and grants: Text
	// is its id.
	Disconnect IntentKind = "disconnect"
	// ConnectClient writes into a Client's settings how it comes here, and
	// DisconnectClient takes that out again with its key: Text is its id.
	// LookForClients looks which there are.
	ConnectClient    IntentKind = "connect-client"
	DisconnectClient IntentKind = "disconnect-client"
	LookForClients   IntentKind = "look-for-clients"
	// Change changes settings: those of Changes that are set.
	Change   IntentKind = "change"
	SelfTest IntentKind = "self-test" // the snapshot has the results
	// TestScreens draws targets on every screen and clicks them; the snapshot
	// has the result.
	TestScreens IntentKind = "test-screens"
	// Undo puts back what the request Entry changed; UndoSession what the session
	// Entry did, the newest first. Where that would overwrite newer work nothing
	// is done and the reply has a Question; Way "anyway" is its yes.
	Undo        IntentKind = "undo"
	UndoSession IntentKind = "undo-session"
	// Remove takes this program off this computer: Text is "keep" for keeping
	// the record, outputs and kept versions, or "erase". The program ends after;
	// Way "quit" leaves the rest to who asked, once it has ended.
	Remove IntentKind = "remove"
	Quit   IntentKind = "quit"
)

// Intent is a person's wish, from the tray, a window or the control socket.
type Intent struct {
	Kind    IntentKind `json:"kind"`
	Entry   string     `json:"entry,omitempty"`
	Text    string     `json:"text,omitempty"`
	Filter  string     `json:"filter,omitempty"` // a capability, or ""
	Way     string     `json:"way,omitempty"`
	AutoGPT *AutoGPT   `json:"autogpt,omitempty"`
	Changes *Changes   `json:"changes,omitempty"`
}

// Changes are new values of settings; nil leaves one as it is.
type Changes struct {
	Name      *string        `json:"name,omitempty"`
	Folder    *string        `json:"folder,omitempty"`
	Autostart *bool          `json:"autostart,omitempty"`
	Rates     map[string]int `json:"rates,omitempty"` // by capability; 0 for the usual
	// KeepGB is how much of old versions is kept at most; -1 for none, 0 for the
	// usual.
	KeepGB *int `json:"keep_gb,omitempty"`
	// PerAction, Clipboard, Hide, HideUsual and Remote are as in Computer.
	PerAction *bool     `json:"per_action,omitempty"`
	Clipboard *string   `json:"clipboard,omitempty"`
	Hide      *[]string `json:"hide,omitempty"`
	HideUsual *bool     `json:"hide_usual,omitempty"`
	Remote    *bool     `json:"remote,omitempty"`
}

// Windows. Serialised.
const (
	WindowPair     = "pair"
	WindowActivity = "activity"
	WindowMain     = "main" // stands in for the tray where there is none

	WindowPermissions = "permissions"
	WindowSettings    = "settings"
)

// CardInfo is what a card shows beside its request.
type CardInfo struct {
	// Waiting is how many more wait behind it.
	Waiting int `json:"waiting"`
	// Folders of a session card: the first is preselected.
	Folders []string `json:"folders,omitempty"`
	// FolderOnly: the one of Folders is what was asked for, and there is no
	// other to choose.
	FolderOnly bool `json:"folder_only,omitempty"`
	// ContainProblem says why nothing can run contained here; "" when it can.
	ContainProblem string `json:"contain_problem,omitempty"`
	// Folded are further requests of the same kind that this one card asks for;
	// its answer is theirs too. They are chosen when the card is presented, and
	// only ever become fewer.
	Folded []Folded `json:"folded,omitempty"`
	// Denied is Session.Denied of its session.
	Denied int `json:"denied,omitempty"`
}

// Folded is one more request on a card.
type Folded struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Exact string `json:"exact"`
	// Steps, Details and Effects as in consent.Request, the latter in words.
	Steps   []string `json:"steps,omitempty"`
	Details []string `json:"details,omitempty"`
	Effects []string `json:"effects,omitempty"`
}

// Reply answers an intent. Detail and Entries are set for GetDetail and Find.
type Reply struct {
	Text    string  `json:"text,omitempty"` // one sentence
	Detail  *Detail `json:"detail,omitempty"`
	Entries []Entry `json:"entries,omitempty"`
	// Question is what the person has to agree to before it is done.
	Question string `json:"question,omitempty"`
}
