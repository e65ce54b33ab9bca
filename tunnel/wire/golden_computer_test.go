package wire

func init() {
	for t, p := range map[Type]Payload{
		TypeScreenshot: &Screenshot{SessionID: session, Monitor: -1, Region: &Rect{-1920, 0, 0, 1080}, Picture: "p-1", Format: "png", Quality: 80,
			IncludeCursor: true, MaxEdge: 1568, MaxTiles: 1568, MaxBytes: 2 << 20, Exact: true, WaitMS: 50000},
		TypeScreenshotResponse: &ScreenshotResponse{Picture: "p-2", Image: []byte{0xff, 0xd8, 0xff}, MIMEType: "image/jpeg", Width: 1456, Height: 819, Monitor: 0,
			Shows: Rect{0, 0, 1920, 1080}, DisplayScale: 1.5, LogicalSize: &Point{1280, 720}, Hidden: []string{"KeePassXC"}, Note: "HDMI-1 is black: it is not shared."},
		TypeInput: &InputAction{SessionID: session, Action: ActDrag, Picture: "p-2", Coordinate: &Point{10, 20}, Path: []Point{{1, 2}, {3, 4}}, Text: "héllo 世界", Key: "ctrl+s", Repeat: 2,
			Button: "left", Modifiers: []string{"shift", "ctrl"}, ScrollAmount: new(0), ScrollDirection: "left", DurationMS: 500, Paste: true, PreserveClipboard: true, WaitMS: 50000},
		TypeCursor:           &ComputerQuery{SessionID: session, WaitMS: 50000},
		TypeCursorResponse:   &CursorResponse{X: -5, Y: 7, Monitor: 1, Picture: "p-2", InPicture: &Point{3, 4}},
		TypeDisplays:         &ComputerQuery{SessionID: session, WaitMS: 50000},
		TypeDisplaysResponse: &DisplaysResponse{Monitors: []Monitor{{Index: 1, Name: "HDMI-1", Primary: true, PhysicalSize: Point{1920, 1080}, LogicalSize: Point{1280, 720}, Scale: 1.5, Origin: Point{-1920, 0}}}},
		TypeWindows:          &Windows{SessionID: session, AppBundleID: "com.example.editor", IncludeMinimized: true, IncludeOffscreen: true, WaitMS: 50000},
		TypeWindowsResponse: &WindowsResponse{Truncated: true, Windows: []Window{{WindowID: "win_1", PID: 4711, AppName: "editor", AppBundleID: "com.example.editor", Title: "notes.txt",
			Bounds: Rect{-10, 0, 400, 300}, Monitor: 1, IsFocused: true, IsMinimized: true, IsFullscreen: true}}},
		TypeWindowFocus:         &WindowFocus{SessionID: session, WindowID: "win_1", Raise: true, WaitMS: 50000},
		TypeApps:                &Apps{SessionID: session, IncludeBackground: true, WaitMS: 50000},
		TypeAppsResponse:        &AppsResponse{Apps: []App{{PID: 4711, Name: "editor", BundleID: "com.example.editor", ExecutablePath: "/usr/bin/editor", IsFrontmost: true, WindowCount: 2}}},
		TypeAppLaunch:           &AppLaunch{SessionID: session, BundleID: "com.example.editor", ExecutablePath: "/usr/bin/editor", Args: []string{"a b"}, Activate: true, WaitMS: 50000},
		TypeAppLaunched:         &AppLaunched{PID: 4711},
		TypeClipRead:            &ClipRead{SessionID: session, Format: "text", WaitMS: 50000},
		TypeClipReadResponse:    &ClipReadResponse{Format: "text", Content: "héllo", SizeBytes: 6},
		TypeClipWrite:           &ClipWrite{SessionID: session, Format: "text", Content: "héllo", WaitMS: 50000},
		TypePermissions:         &Permissions{SessionID: session, Permissions: []string{"screen_recording"}, WaitMS: 50000},
		TypePermissionsResponse: &PermissionsResponse{Permissions: map[string]string{"screen_recording": "granted"}},
	} {
		samples[t] = p
	}
	samples[TypeError] = &ErrorPayload{Code: CodeDenied, Message: "Ann declined: run \"ls\".", Details: map[string]any{"reason": "declined"}}
}
