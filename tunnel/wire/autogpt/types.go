package autogpt

import "localpc/tunnel/wire"

// The messages. Machine M, hub H; "->" says what answers.
const (
	TypeHello    Type = "HELLO"     // M to H, first frame of every connection
	TypeHelloAck Type = "HELLO_ACK" // H to M, first frame back, same id
	TypeStatus   Type = "STATUS"    // M to H, unsolicited
	TypePing     Type = "PING"      // H to M -> PONG, outside admission
	TypePong     Type = "PONG"
	TypeRevoked  Type = "SESSION_REVOKED" // H to M, never answered, outside admission
	TypeAck      Type = "ACK"
	TypeError    Type = "ERROR" // M to H, answers any request

	// The control connection.
	TypeDirectoryList Type = "DIRECTORY_LIST_REQUEST" // -> DIRECTORY_LIST_RESPONSE
	TypeDirectory     Type = "DIRECTORY_LIST_RESPONSE"
	TypeAttach        Type = "ATTACH_SESSION" // -> SESSION_ATTACHED
	TypeAttached      Type = "SESSION_ATTACHED"
	TypeActivate      Type = "ACTIVATE_SESSION" // -> SESSION_ACTIVATED
	TypeActivated     Type = "SESSION_ACTIVATED"
	TypeRestore       Type = "RESTORE_SESSION" // -> SESSION_RESTORED
	TypeRestored      Type = "SESSION_RESTORED"
	TypeDetach        Type = "DETACH_SESSION" // -> ACK

	// A chat's data connection.
	TypeExecute          Type = "EXECUTE_COMMAND" // -> COMMAND_RESULT
	TypeResult           Type = "COMMAND_RESULT"
	TypeFileRead         Type = "FILE_READ" // -> FILE_CONTENTS
	TypeFileContents     Type = "FILE_CONTENTS"
	TypeFileWrite        Type = "FILE_WRITE" // -> ACK
	TypeFileStat         Type = "FILE_STAT"  // -> FILE_STAT_RESPONSE
	TypeFileStatResponse Type = "FILE_STAT_RESPONSE"
	TypeFileList         Type = "FILE_LIST" // -> FILE_LIST_RESPONSE
	TypeFileListResponse Type = "FILE_LIST_RESPONSE"
	TypeFileDelete       Type = "FILE_DELETE" // -> ACK
	TypeFileMove         Type = "FILE_MOVE"   // -> ACK

	TypeScreenshot       Type = "SCREENSHOT_REQUEST" // -> SCREENSHOT_RESPONSE
	TypeScreenshotImage  Type = "SCREENSHOT_RESPONSE"
	TypeInput            Type = "INPUT_ACTION"            // -> ACK
	TypeCursor           Type = "CURSOR_POSITION_REQUEST" // -> CURSOR_POSITION_RESPONSE
	TypeCursorPosition   Type = "CURSOR_POSITION_RESPONSE"
	TypeDisplays         Type = "DISPLAY_INFO_REQUEST" // -> DISPLAY_INFO_RESPONSE
	TypeDisplayInfo      Type = "DISPLAY_INFO_RESPONSE"
	TypeWindows          Type = "WINDOW_LIST_REQUEST" // -> WINDOW_LIST_RESPONSE
	TypeWindowList       Type = "WINDOW_LIST_RESPONSE"
	TypeWindowFocus      Type = "WINDOW_FOCUS"     // -> ACK
	TypeApps             Type = "APP_LIST_REQUEST" // -> APP_LIST_RESPONSE
	TypeAppList          Type = "APP_LIST_RESPONSE"
	TypeAppLaunch        Type = "APP_LAUNCH"     // -> ACK
	TypeClipboardRead    Type = "CLIPBOARD_READ" // -> CLIPBOARD_READ_RESPONSE
	TypeClipboardContent Type = "CLIPBOARD_READ_RESPONSE"
	TypeClipboardWrite   Type = "CLIPBOARD_WRITE"           // -> ACK
	TypePermissions      Type = "PERMISSIONS_CHECK_REQUEST" // -> PERMISSIONS_CHECK_RESPONSE
	TypePermissionStates Type = "PERMISSIONS_CHECK_RESPONSE"

	TypeLLM         Type = "LOCAL_LLM_COMPLETION"       // -> LOCAL_LLM_COMPLETION_CHUNK*, LOCAL_LLM_COMPLETION_RESPONSE
	TypeLLMChunk    Type = "LOCAL_LLM_COMPLETION_CHUNK" // without pending_capacity
	TypeLLMResponse Type = "LOCAL_LLM_COMPLETION_RESPONSE"

	// Reserved: recording. Named so that it is refused properly.
	TypeRecordingConsent Type = "REQUEST_RECORDING_CONSENT"
	TypeRecordingAnswer  Type = "RECORDING_CONSENT_RESULT"
	TypeRecordingStart   Type = "START_RECORDING"
	TypeRecordingStarted Type = "RECORDING_STARTED"
	TypeRecordingStop    Type = "STOP_RECORDING"
	TypeRecordingSummary Type = "RECORDING_SUMMARY"
	TypeRecordingFetch   Type = "RECORDING_FETCH"
	TypeRecordingData    Type = "RECORDING_DATA"
	TypeRecordingReview  Type = "APPLY_RECORDING_REVIEW"
	TypeRecordingApplied Type = "RECORDING_REVIEW_APPLIED"
	TypeRecordingStep    Type = "RECORDING_STEP" // M to H, unsolicited
)

// The capabilities of HELLO that a hub may grant.
const (
	Shell       = "shell"
	Files       = "files"
	ComputerUse = "computer_use"
	LocalLLM    = "local_llm"
	Recording   = "recording"
	Browse      = "directory_browse" // the control connection alone
)

type kind struct {
	dir      wire.Direction
	make     func() wire.Payload // with the defaults of missing fields
	terminal bool
	control  bool
	harmless bool
	needs    string
	replies  []Type
}

func of[T any, P interface {
	*T
	wire.Payload
}](defaults T) func() wire.Payload {
	return func() wire.Payload {
		v := defaults
		return P(&v)
	}
}

func ask(make func() wire.Payload, needs string, replies ...Type) kind {
	return kind{dir: wire.ToMachine, make: make, needs: needs, replies: replies, control: needs == Browse}
}

func look(make func() wire.Payload, needs string, replies ...Type) kind {
	k := ask(make, needs, replies...)
	k.harmless = true
	return k
}

func reply(make func() wire.Payload) kind {
	return kind{dir: wire.ToHub, make: make, terminal: true}
}

func tell(dir wire.Direction, make func() wire.Payload) kind { return kind{dir: dir, make: make} }

var kinds = map[Type]kind{
	TypeHello:    tell(wire.ToHub, of(Hello{Protocol: "1.0"})),
	TypeHelloAck: tell(wire.ToMachine, of(HelloAck{Protocol: Version, MaxFileSize: MaxFile, CommandTimeout: 30, MaxConcurrent: Concurrent})),
	TypeStatus:   tell(wire.ToHub, of(Status{})),
	TypePing:     ask(of(Empty{}), "", TypePong),
	TypePong:     reply(of(Empty{})),
	TypeRevoked:  tell(wire.ToMachine, of(Revoked{})),
	TypeAck:      reply(of(Ack{OK: true})),
	TypeError:    reply(of(Error{})),

	TypeDirectoryList: ask(of(DirectoryList{}), Browse, TypeDirectory),
	TypeDirectory:     reply(of(Directory{})),
	TypeAttach:        ask(of(Attach{}), Browse, TypeAttached),
	TypeAttached:      reply(of(Binding{})),
	TypeActivate:      ask(of(Activate{}), Browse, TypeActivated),
	TypeActivated:     reply(of(Activated{})),
	TypeRestore:       ask(of(Restore{}), Browse, TypeRestored),
	TypeRestored:      reply(of(Binding{})),
	TypeDetach:        ask(of(Detach{}), Browse, TypeAck),

	TypeExecute:          ask(of(Execute{Shell: "auto"}), Shell, TypeResult),
	TypeResult:           reply(of(Result{})),
	TypeFileRead:         look(of(FileRead{Encoding: UTF8, Format: "text"}), Files, TypeFileContents),
	TypeFileContents:     reply(of(FileContents{})),
	TypeFileWrite:        ask(of(FileWrite{Encoding: UTF8}), Files, TypeAck),
	TypeFileStat:         look(of(FileStat{FollowSymlinks: true}), Files, TypeFileStatResponse),
	TypeFileStatResponse: reply(of(FileStatResponse{})),
	TypeFileList:         look(of(FileList{MaxEntries: 1000}), Files, TypeFileListResponse),
	TypeFileListResponse: reply(of(FileListResponse{})),
	TypeFileDelete:       ask(of(FileDelete{}), Files, TypeAck),
	TypeFileMove:         ask(of(FileMove{}), Files, TypeAck),

	TypeScreenshot:       look(of(Screenshot{Quality: 75, Format: "jpeg", IncludeCursor: true}), ComputerUse, TypeScreenshotImage),
	TypeScreenshotImage:  reply(of(ScreenshotImage{MIMEType: "image/jpeg", DisplayScale: 1})),
	TypeInput:            ask(of(Input{}), ComputerUse, TypeAck),
	TypeCursor:           look(of(Empty{}), ComputerUse, TypeCursorPosition),
	TypeCursorPosition:   reply(of(CursorPosition{})),
	TypeDisplays:         look(of(Empty{}), ComputerUse, TypeDisplayInfo),
	TypeDisplayInfo:      reply(of(DisplayInfo{})),
	TypeWindows:          look(of(Windows{}), ComputerUse, TypeWindowList),
	TypeWindowList:       reply(of(WindowList{})),
	TypeWindowFocus:      ask(of(WindowFocus{Raise: true}), ComputerUse, TypeAck),
	TypeApps:             look(of(Apps{}), ComputerUse, TypeAppList),
	TypeAppList:          reply(of(AppList{})),
	TypeAppLaunch:        ask(of(AppLaunch{Activate: true}), ComputerUse, TypeAck),
	TypeClipboardRead:    look(of(ClipboardRead{Format: "text"}), ComputerUse, TypeClipboardContent),
	TypeClipboardContent: reply(of(ClipboardContent{Format: "text"})),
	TypeClipboardWrite:   ask(of(ClipboardWrite{Format: "text"}), ComputerUse, TypeAck),
	TypePermissions:      look(of(Permissions{}), ComputerUse, TypePermissionStates),
	TypePermissionStates: reply(of(PermissionStates{})),

	TypeLLM:         ask(of(LLM{MaxTokens: 1024, TopP: 1, Stream: true}), LocalLLM, TypeLLMChunk, TypeLLMResponse),
	TypeLLMChunk:    tell(wire.ToHub, of(LLMChunk{})),
	TypeLLMResponse: reply(of(LLMResponse{})),

	TypeRecordingConsent: ask(of(Reserved{}), Recording, TypeRecordingAnswer),
	TypeRecordingAnswer:  reply(of(Reserved{})),
	TypeRecordingStart:   ask(of(Reserved{}), Recording, TypeRecordingStarted),
	TypeRecordingStarted: reply(of(Reserved{})),
	TypeRecordingStop:    ask(of(Reserved{}), Recording, TypeRecordingSummary),
	TypeRecordingSummary: reply(of(Reserved{})),
	TypeRecordingFetch:   look(of(Reserved{}), Recording, TypeRecordingData),
	TypeRecordingData:    reply(of(Reserved{})),
	TypeRecordingReview:  ask(of(Reserved{}), Recording, TypeRecordingApplied),
	TypeRecordingApplied: reply(of(Reserved{})),
	TypeRecordingStep:    tell(wire.ToHub, of(Reserved{})),
}
