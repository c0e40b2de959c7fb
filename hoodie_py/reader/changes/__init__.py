"""What commits changed in one file slice, as rows before and after."""
