package main

import (
	"bytes"
	"html"
	"net/http"
	"regexp"
)

// vCenter's own sentences, where the simulator leaves them empty or writes Go's name of the type. The components of the
// cluster log them, and those logs are read by the programs under test.
var words = map[string]string{
	"InvalidLogin":          "Cannot complete login due to an incorrect user name or password.",
	"NotAuthenticated":      "The session is not authenticated.",
	"NoPermission":          "Permission to perform this operation was denied.",
	"DuplicateName":         "The name already exists.",
	"AlreadyExists":         "The specified key, name, or identifier already exists.",
	"NotFound":              "The object or item referred to could not be found.",
	"ManagedObjectNotFound": "The object has already been deleted or has not been completely created",
	"ResourceInUse":         "The resource is in use.",
	"InUse":                 "The resource is in use.",
	"InvalidPowerState":     "The attempted operation cannot be performed in the current state.",
	"InvalidState":          "The operation is not allowed in the current state.",
	"InvalidArgument":       "A specified parameter was not correct.",
	"RequestCanceled":       "The task was canceled by a user.",
	"TaskInProgress":        "Another task is already in progress.",
	"ServiceUnavailable":    "The service is not available.",
}

func wordsFor(kind string) string {
	if text, ok := words[kind]; ok {
		return text
	}
	return "A general system error occurred: " + kind
}

var (
	faultType   = regexp.MustCompile(`<detail><\w+Fault [^>]*type="(\w+)"`)
	poorWords   = regexp.MustCompile(`<faultstring>(Login failure)?</faultstring>`)
	typeAsWords = regexp.MustCompile(`<localizedMessage>\*types\.(\w+)</localizedMessage>`)
)

// speakLikeVCenter gives faults and failed tasks the sentences a client of a real vCenter reads.
func speakLikeVCenter(a *answer) {
	body := a.body.Bytes()
	if a.status == http.StatusInternalServerError {
		if kind := faultType.FindSubmatch(body); kind != nil {
			text := "<faultstring>" + html.EscapeString(wordsFor(string(kind[1]))) + "</faultstring>"
			replace(a, poorWords.ReplaceAllLiteral(body, []byte(text)))
		}
		return
	}
	if bytes.Contains(body, []byte("<localizedMessage>*types.")) {
		replace(a, typeAsWords.ReplaceAllFunc(body, func(match []byte) []byte {
			kind := string(typeAsWords.FindSubmatch(match)[1])
			return []byte("<localizedMessage>" + html.EscapeString(wordsFor(kind)) + "</localizedMessage>")
		}))
	}
}

func replace(a *answer, body []byte) {
	a.body = *bytes.NewBuffer(body)
}
