"""The toolkit that writes C, for every instruction set: values, views, nests of loops, windows."""
