// Package desklink is how localpc talks to the two processes of localpc-desktop,
// over their standard input and output. It starts each when it is needed and
// lets it go when it has been idle. With the one that shows cards (step 4) and
// windows (step 7) it is one JSON object a line: Host is localpc's side, Child
// the other. With the one that touches the display (step 5) a picture or text
// may follow each, as it is: Hands is localpc's side, ServeHands the other.
package desklink

import (
	"localpc/app/snapshot"
	"localpc/consent"
)

// MaxLine bounds one message, both ways, in bytes.
const MaxLine = 24 << 20

// Down is a message to localpc-desktop. Exactly one field is set.
type Down struct {
	Snapshot *snapshot.Snapshot `json:"snapshot,omitempty"`
	Show     *Show              `json:"show,omitempty"`
	Card     *Card              `json:"card,omitempty"`
	Close    *CloseCard         `json:"close,omitempty"`
	Raise    *RaiseCard         `json:"raise,omitempty"`
	// Look is a picture for the open card.
	Look   *consent.Look    `json:"look,omitempty"`
	Detail *snapshot.Detail `json:"detail,omitempty"`
	Found  *Found           `json:"found,omitempty"`
	// Told is the answer to an intent that failed or worked: one sentence.
	Told *Told `json:"told,omitempty"`
	// Removed says what became of the removal that a window asked for. It is the
	// last that is said; Quit follows when its window has been closed.
	Removed *Removed `json:"removed,omitempty"`
	Quit    bool     `json:"quit,omitempty"`
}

// Show opens a window, or raises it.
type Show struct {
	Window string `json:"window"` // a snapshot.Window…
}

// Card is a request to show. At most one card is on screen; the next comes
// after CloseCard.
type Card struct {
	Request consent.Request `json:"request"`
	Waiting int             `json:"waiting"` // behind this one
	// Digits are typed to allow by keyboard: two, new for each card.
	Digits string `json:"digits"`
	// ArmMS is how long the allowing controls stay unarmed once it is drawn.
	ArmMS int `json:"arm_ms"`
	// Folder choices of a session card: the first is preselected.
	Folders []string `json:"folders,omitempty"`
	// FolderOnly: the one of Folders is what was asked for, and there is no
	// other to choose.
	FolderOnly bool `json:"folder_only,omitempty"`
	// ContainProblem says why nothing can run contained here; "" when it can.
	ContainProblem string `json:"contain_problem,omitempty"`
	// Folded and Denied are as in snapshot.CardInfo.
	Folded []snapshot.Folded `json:"folded,omitempty"`
	Denied int               `json:"denied,omitempty"`
	// Update: this is the open card with fewer Folded. Its controls stay as
	// they are, armed too; where it is not open any more there is nothing to do.
	Update bool `json:"update,omitempty"`
}

// CloseCard takes a card off the screen: its request has ended, or it was
// answered elsewhere.
type CloseCard struct {
	ID string `json:"id"`
}

// RaiseCard brings the open card to the front, for a person who asked for it.
type RaiseCard struct{}

// Found answers snapshot.Find.
type Found struct {
	Text    string           `json:"text"`
	Filter  string           `json:"filter"`
	Entries []snapshot.Entry `json:"entries"`
}

// Told is one sentence for the window that sent an intent.
type Told struct {
	Intent snapshot.IntentKind `json:"intent"`
	OK     bool                `json:"ok"`
	Text   string              `json:"text"`
	// Question is what the person has to agree to before it is done.
	Question string `json:"question,omitempty"`
}

// Removed is how the removal from this computer ended.
type Removed struct {
	// Problem says what could not be removed; "" when everything was.
	Problem string `json:"problem,omitempty"`
	// Notes are sentences about what stays.
	Notes []string `json:"notes,omitempty"`
}

// Up is a message from localpc-desktop. Exactly one field is set.
type Up struct {
	// Ready comes once, when the toolkit runs and the card window exists.
	Ready *Ready `json:"ready,omitempty"`
	// Shown says that a card has been drawn on the screen.
	Shown  *CardRef         `json:"shown,omitempty"`
	Answer *CardAnswer      `json:"answer,omitempty"`
	Intent *snapshot.Intent `json:"intent,omitempty"`
	// Windows says how many windows are open, whenever that changes.
	Windows *int `json:"windows,omitempty"`
}

// Ready introduces the child.
type Ready struct {
	PID int `json:"pid"`
}

// CardRef names a card by its request.
type CardRef struct {
	ID string `json:"id"`
}

// CardAnswer is the person's answer.
type CardAnswer struct {
	ID     string         `json:"id"`
	Answer consent.Answer `json:"answer"`
}
