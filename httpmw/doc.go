// Package httpmw puts Interlock's guards in front of net/http handlers.
package httpmw
