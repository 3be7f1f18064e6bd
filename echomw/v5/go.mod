module github.com/interlock-go/interlock/echomw/v5

go 1.26.0

require (
	github.com/interlock-go/interlock v0.0.0-00010101000000-000000000000
	github.com/labstack/echo/v5 v5.3.1
)

require golang.org/x/time v0.15.0 // indirect

replace github.com/interlock-go/interlock => ../..
