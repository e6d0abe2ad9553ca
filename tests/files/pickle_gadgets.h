// Functions that run code, read or write files or open connections when a pickle calls them: those of
// picklescan's published advisories and of its list of dangerous names. arXiv 2508.19774 describes 133 more
// ways; which of these names are among them is not known, the paper's list was not at hand.
#pragma once

#include <string_view>

namespace tandem {

// Separated by blanks. Of the standard library, then of NumPy, PyTorch and other packages.
inline constexpr std::string_view pickle_gadgets = R"(
builtins.eval builtins.exec builtins.compile builtins.getattr builtins.setattr builtins.open
builtins.breakpoint builtins.__import__ builtins.apply builtins.globals builtins.vars builtins.map
builtins.filter builtins.type builtins.object builtins.print builtins.input __builtin__.eval
__builtin__.exec __builtin__.getattr __builtin__.apply __builtin__.compile __builtin__.open
__builtin__.execfile __builtin__.reload os.system os.popen os.execv os.execl os.execvp os.spawnl os.spawnv
os.spawnlp os.posix_spawn os.putenv os.remove os.rename os.fork os.kill os.startfile os.chmod posix.system
posix.popen posix.execve posix.fork_exec nt.system nt.startfile nt.popen subprocess.Popen subprocess.run
subprocess.call subprocess.check_call subprocess.check_output subprocess.getoutput
subprocess.getstatusoutput subprocess.list2cmdline _posixsubprocess.fork_exec commands.getoutput
commands.getstatusoutput popen2.popen3 multiprocessing.util.spawnv_passfds
multiprocessing.process.BaseProcess.run multiprocessing.spawn.spawn_main runpy.run_path runpy.run_module
runpy._run_code runpy._run_module_code pty.spawn pty.fork timeit.timeit timeit.repeat timeit.main
timeit.Timer trace.Trace.run trace.Trace.runctx trace.Trace.runfunc pdb.run pdb.runeval pdb.runcall
pdb.Pdb bdb.Bdb.run bdb.Bdb.runeval bdb.Bdb.runctx bdb.Bdb.runcall cProfile.run cProfile.runctx
cProfile.Profile.run profile.run profile.runctx profile.Profile.run profile.Profile.runctx
code.InteractiveInterpreter.runcode code.InteractiveInterpreter.runsource code.InteractiveConsole.push
code.interact codeop.compile_command doctest.debug_script doctest.debug doctest.testsource pydoc.pipepager
pydoc.tempfilepager pydoc.locate pydoc.render_doc _pyrepl.pager.pipe_pager _pyrepl.pager.tempfile_pager
_sitebuiltins.Quitter asyncio.unix_events._UnixSubprocessTransport._start asyncio.create_subprocess_shell
asyncio.run asyncio.base_events.BaseEventLoop.subprocess_shell concurrent.futures.process._process_worker
idlelib.autocomplete.AutoComplete.get_entity idlelib.autocomplete.AutoComplete.fetch_completions
idlelib.calltip.Calltip.fetch_tip idlelib.calltip.get_entity idlelib.debugobj.ObjectTreeItem.SetText
idlelib.pyshell.ModifiedInterpreter.runcode idlelib.pyshell.ModifiedInterpreter.runcommand
idlelib.run.Executive.runcode lib2to3.pgen2.grammar.Grammar.loads lib2to3.pgen2.grammar.Grammar.load
lib2to3.pgen2.pgen.ParserGenerator.make_label ensurepip._run_pip ensurepip.bootstrap venv.create
venv.EnvBuilder._call_new_python pip.main pip._internal.main pip._internal.cli.main.main
imaplib.IMAP4_stream test.support.script_helper.assert_python_ok test.support.script_helper.spawn_python
uuid._get_command_stdout uuid._popen _osx_support._read_output _osx_support._find_build_tool
_aix_support._read_cmd_output ctypes.CDLL ctypes.cdll.LoadLibrary ctypes.CFUNCTYPE ctypes.string_at
_ctypes.dlopen ctypes.util._findLib_gcc functools.partial functools.reduce operator.attrgetter
operator.methodcaller operator.itemgetter operator.call _operator.attrgetter _operator.methodcaller
_operator.itemgetter itertools.starmap _functools.reduce types.CodeType types.FunctionType
types.MethodType marshal.loads marshal.load importlib.import_module importlib.__import__ importlib.reload
importlib._bootstrap._load importlib.util.spec_from_file_location importlib.util.module_from_spec
importlib.machinery.SourceFileLoader imp.load_source imp.load_dynamic imp.init_builtin
zipimport.zipimporter pkgutil.resolve_name pkgutil.get_data site.addsitedir site.execsitecustomize
sys.modules sys.settrace sys.setprofile sys.exit sys.addaudithook gc.get_objects inspect.getattr_static
dis.dis ast.parse rlcompleter.Completer.complete pickle.loads pickle.load pickle.Unpickler _pickle.loads
_pickle.load _pickle.Unpickler cPickle.loads dill.loads dill._dill._create_function cloudpickle.loads
joblib.load cloudpickle.cloudpickle._builtin_type cloudpickle.cloudpickle._make_function
cloudpickle.cloudpickle.subimport shelve.open shelve.DbfilenameShelf copyreg._reconstructor
copyreg.__newobj__ copyreg.add_extension copy_reg._reconstructor yaml.unsafe_load yaml.load
jsonpickle.decode pandas.read_pickle pandas.io.pickle.read_pickle pandas.eval
pandas.core.computation.eval.eval distutils.file_util.write_file distutils.file_util.copy_file
distutils.spawn.spawn distutils.command.install.install setuptools.setup shutil.rmtree shutil.copy
shutil.move shutil.chown shutil.unpack_archive tempfile.NamedTemporaryFile fileinput.input
linecache.updatecache linecache.getlines pathlib.Path.write_text pathlib.Path.unlink io.open io.FileIO
_io.FileIO _io.open codecs.open tarfile.open zipfile.ZipFile.extractall gzip.open bz2.open lzma.open
logging.FileHandler logging.config.listen logging.config.fileConfig logging.config._resolve
logging.handlers.SocketHandler sqlite3.connect sqlite3.Connection.load_extension dbm.open mmap.mmap
socket.socket socket.create_connection socket.getaddrinfo socketserver.TCPServer
ssl.get_server_certificate ssl.SSLContext smtplib.SMTP ftplib.FTP poplib.POP3 telnetlib.Telnet
nntplib.NNTP xmlrpc.client.ServerProxy http.client.HTTPSConnection http.server.test http.server.HTTPServer
httplib.HTTPSConnection urllib.urlopen urllib2.urlopen urllib.request.urlopen urllib.request.urlretrieve
urllib.request.Request requests.get requests.api.get requests.api.request aiohttp.ClientSession
webbrowser.open webbrowser.GenericBrowser antigravity.geohash turtle.Screen tkinter.Tcl
tkinter._tkinter.create cgi.FieldStorage cgitb.Hook wsgiref.handlers.CGIHandler.run optparse.OptionParser
sched.scheduler.run threading.Thread threading.Timer _thread.start_new_thread thread.start_new_thread
signal.signal signal.raise_signal faulthandler._sigsegv atexit.register weakref.finalize
contextlib.ExitStack.callback unittest.mock._importer unittest.mock.patch
unittest.loader.TestLoader.loadTestsFromName collections.namedtuple dataclasses.make_dataclass
dataclasses._create_fn enum._make_class_unpicklable string.Formatter.format readline.read_init_file
_interpreters.create _interpreters.run_string _xxsubinterpreters.run_string _testcapi.run_in_subinterp
_testinternalcapi.exec_interpreter cffi.FFI.dlopen nose.tools.assert_raises IPython.get_ipython
IPython.core.interactiveshell.InteractiveShell.run_cell matplotlib.cbook._unpack_to_numpy
numpy.f2py.crackfortran.getlincoef numpy.f2py.crackfortran._eval_length numpy.f2py.crackfortran.myeval
numpy.f2py.crackfortran.param_eval numpy.f2py.diagnose.run_command numpy.f2py.compile numpy.load
numpy.testing._private.utils.runstring numpy.testing._private.utils.rundocs
numpy.testing._private.utils.measure numpy.testing.extbuild.compile_extension_module
numpy.distutils.exec_command.exec_command numpy.distutils.misc_util.exec_mod_from_location
numpy.ctypeslib.load_library numpy.core.multiarray._reconstruct numpy.core.multiarray.scalar numpy.memmap
numpy.fromfile numpy.savetxt numpy.vectorize numpy.frompyfunc scipy.io.loadmat sympy.sympify
sympy.core.sympify.sympify sklearn.utils._pprint._EstimatorPrettyPrinter torch.load
torch.serialization.load torch.storage._load_from_bytes torch.hub.load torch.hub._load_local
torch.hub.load_state_dict_from_url torch.jit.load torch.jit.script
torch.jit.unsupported_tensor_ops.execWrapper torch.ops.load_library torch.classes.load_library
torch._dynamo.guards.GuardBuilder.get torch._dynamo.utils.graph_break_reasons
torch._inductor.codecache.compile_file torch._inductor.codecache.PyCodeCache.load
torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression
torch.fx.experimental.symbolic_shapes.ShapeEnv.produce_guards torch.fx.graph_module._exec_with_source
torch.fx.graph_module._forward_from_src torch.fx.graph_module.reduce_graph_module
torch.utils._config_module.ConfigModule.load_config torch.utils._config_module.load_config
torch.utils.bottleneck.__main__.run_cprofile torch.utils.bottleneck.__main__.run_autograd_prof
torch.utils.collect_env.run torch.utils.collect_env.run_and_read_all torch.utils.cpp_extension.load
torch.utils.cpp_extension.load_inline torch.utils.cpp_extension._run_ninja_build
torch.utils.cpp_extension._import_module_from_library
torch.utils.data.datapipes.utils.decoder.basichandlers torch.utils.benchmark.Timer.timeit
torch.utils.model_dump.get_model_info torch.distributed.rpc.internal.deserialize
torch.distributed.elastic.multiprocessing.start_processes torch.distributed.run.main
torch.multiprocessing.spawn torch.package.PackageImporter torch.onnx.export torch.save
torch.testing._internal.common_utils.run_tests torch.testing._internal.common_utils.shell
torch.nn.modules.container.Sequential torch._tensor._rebuild_from_type_v2
torch._utils._rebuild_wrapper_subclass torch._utils._import_dotted_name torch._C._jit_set_profiling_mode
torchvision.datasets.utils.download_url torch._appdirs.system tensorflow.keras.models.load_model
keras.models.model_from_json keras.src.saving.saving_lib.load_model keras.utils.get_file
tensorflow.python.framework.load_library.load_op_library tensorflow.io.read_file tensorflow.py_function
transformers.AutoModel.from_pretrained transformers.pipelines.pipeline onnx.load mlflow.pyfunc.load_model
h5py.File PIL.ImageMath.eval PIL.Image.open fsspec.open boto3.client paramiko.SSHClient fabric.Connection
invoke.run sh.Command plumbum.local pexpect.spawn pexpect.run psutil.Popen numba.jit cupy.RawKernel
triton.compile pyarrow.plasma.connect ray.get dask.config.collect_yaml nltk.data.load
gensim.utils.unpickle spacy.load wandb.restore pytest.main _pytest.config.main hydra.utils.instantiate
omegaconf.OmegaConf.load lightning.pytorch.cli.LightningCLI argparse.Namespace
)";

}  // namespace tandem
