package machine

import (
	"strings"
	"time"

	"localpc/capabilities"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// waitOf is how long the client of a request can wait for the person.
func waitOf(p wire.Payload) time.Duration {
	ms := 0
	switch p := p.(type) {
	case *wire.SessionOpen:
		ms = p.WaitMS
	case *wire.ProcessStart:
		ms = p.WaitMS
	case *wire.FileRead:
		ms = p.WaitMS
	case *wire.FileWrite:
		ms = p.WaitMS
	case *wire.FileStat:
		ms = p.WaitMS
	case *wire.FilePath:
		ms = p.WaitMS
	case *wire.FileDelete:
		ms = p.WaitMS
	case *wire.FileList:
		ms = p.WaitMS
	case *wire.FileMove:
		ms = p.WaitMS
	case *wire.FileWatch:
		ms = p.WaitMS
	case *wire.FileSearch:
		ms = p.WaitMS
	default:
		if _, wait := ofComputer(p); wait != nil {
			ms = *wait
		}
	}
	switch p.(type) {
	case *autogpt.DirectoryList, *autogpt.Attach, *autogpt.Activate, *autogpt.Restore, *autogpt.Detach:
		return chatWait
	}
	if ms == 0 {
		return defaultWait
	}
	return min(time.Duration(ms)*time.Millisecond, maxWait)
}

// notTaken says why there is no executor for a request.
func notTaken(msg wire.Message) error {
	if _, wait := ofComputer(msg.Payload); wait != nil {
		return wire.Errorf(wire.CodeNotSupported, "This computer has no screen that programs could see or use: Local PC Executor runs without a desktop there.")
	}
	return wire.Errorf(wire.CodeNotSupported, "This computer does not take requests of the kind %s.", msg.Type)
}

// sessionOf is the session that a request names, "" where it names none.
func sessionOf(p wire.Payload) string {
	switch p := p.(type) {
	case *capabilities.Connect:
		return p.SessionID
	case *wire.SessionTTL:
		return p.SessionID
	case *wire.SessionRef:
		return p.SessionID
	case *wire.ProcessStart:
		return p.SessionID
	case *wire.ProcessSignal:
		return p.SessionID
	case *wire.FileRead:
		return p.SessionID
	case *wire.FileWrite:
		return p.SessionID
	case *wire.FileStat:
		return p.SessionID
	case *wire.FilePath:
		return p.SessionID
	case *wire.FileDelete:
		return p.SessionID
	case *wire.FileList:
		return p.SessionID
	case *wire.FileMove:
		return p.SessionID
	case *wire.FileWatch:
		return p.SessionID
	case *wire.FileSearch:
		return p.SessionID
	case *wire.Metrics:
		return p.SessionID
	}
	if session, _ := ofComputer(p); session != nil {
		return *session
	}
	return ""
}

// address gives a chat's request the session it has on this machine, and the
// time that its card has.
func address(p wire.Payload, session string, wait time.Duration) {
	ms := int(wait.Milliseconds())
	switch p := p.(type) {
	case *wire.ProcessStart:
		p.SessionID, p.WaitMS = session, ms
	case *wire.ProcessSignal:
		p.SessionID = session
	case *wire.FileRead:
		p.SessionID, p.WaitMS = session, ms
	case *wire.FileWrite:
		p.SessionID, p.WaitMS = session, ms
	case *wire.FileStat:
		p.SessionID, p.WaitMS = session, ms
	case *wire.FilePath:
		p.SessionID, p.WaitMS = session, ms
	case *wire.FileDelete:
		p.SessionID, p.WaitMS = session, ms
	case *wire.FileList:
		p.SessionID, p.WaitMS = session, ms
	case *wire.FileMove:
		p.SessionID, p.WaitMS = session, ms
	default:
		if s, w := ofComputer(p); s != nil {
			*s, *w = session, ms
		}
	}
}

// ofComputer are the fields of a request for screen, mouse and keyboard that say
// of which session it is and how long its client can wait; nil for others.
func ofComputer(p wire.Payload) (session *string, waitMS *int) {
	switch p := p.(type) {
	case *wire.Screenshot:
		return &p.SessionID, &p.WaitMS
	case *wire.InputAction:
		return &p.SessionID, &p.WaitMS
	case *wire.ComputerQuery:
		return &p.SessionID, &p.WaitMS
	case *wire.Windows:
		return &p.SessionID, &p.WaitMS
	case *wire.WindowFocus:
		return &p.SessionID, &p.WaitMS
	case *wire.Apps:
		return &p.SessionID, &p.WaitMS
	case *wire.AppLaunch:
		return &p.SessionID, &p.WaitMS
	case *wire.ClipRead:
		return &p.SessionID, &p.WaitMS
	case *wire.ClipWrite:
		return &p.SessionID, &p.WaitMS
	case *wire.Permissions:
		return &p.SessionID, &p.WaitMS
	}
	return nil, nil
}

// titleOf names a request that no executor has described.
func titleOf(c capabilities.Call) string {
	switch p := c.Payload.(type) {
	case *capabilities.Connect:
		return "Reach " + p.Host
	case *wire.ProcessStart:
		return "Run " + p.EffectiveArg0()
	case *wire.FileRead:
		return "Read " + p.Path
	case *wire.FileWrite:
		return "Write " + p.Path
	case *wire.FileStat:
		return "Look at " + p.Path
	case *wire.FilePath:
		return "Make the folder " + p.Path
	case *wire.FileDelete:
		return "Delete " + p.Path
	case *wire.FileList:
		return "List " + p.Path
	case *wire.FileMove:
		return "Move " + p.Src
	case *wire.FileWatch:
		return "Watch " + p.Path
	case *wire.FileSearch:
		return "Search in " + p.Path
	case *wire.Metrics:
		return "See how busy this computer is"
	case *wire.SessionOpen:
		return "Open a session"
	case *wire.Screenshot:
		return "See the screen"
	case *wire.InputAction:
		return "Use mouse and keyboard: " + strings.ReplaceAll(p.Action, "_", " ")
	case *wire.ComputerQuery:
		return "Ask about the screens"
	case *wire.Windows:
		return "List windows"
	case *wire.WindowFocus:
		return "Bring a window to the front"
	case *wire.Apps:
		return "List programs"
	case *wire.AppLaunch:
		return "Start " + p.ExecutablePath + p.BundleID
	case *wire.ClipRead:
		return "Read the clipboard"
	case *wire.ClipWrite:
		return "Write to the clipboard"
	case *wire.Permissions:
		return "Check what the display allows"
	case *autogpt.DirectoryList:
		return "See the names of folders"
	case *autogpt.Attach:
		return "Bind a chat to a folder"
	case *autogpt.Activate:
		return "Connect a chat"
	case *autogpt.Restore:
		return "Connect a chat again"
	case *autogpt.Detach:
		return "Detach a chat"
	}
	return "A request"
}
