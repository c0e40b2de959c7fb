"""Create the bucket of TABLE's URI if it does not exist. Address and credentials come from AWS_* variables."""

import os

import s3fs

bucket = os.environ["TABLE"].removeprefix("s3://").partition("/")[0]
store = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"])
if bucket not in store.ls(""):
    store.mkdir(bucket)
print(f"bucket {bucket} is there")
