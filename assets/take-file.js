(file) => {
  if (!file) return null;
  const link = document.createElement("a");
  Object.assign(link, { href: file.url, download: file.orig_name ?? "" });
  link.click();
  return null; // so that the same file can be requested again
}
