module x

go 1.26.9
